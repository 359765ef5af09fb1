"""What benchmarks tell, and the table that is made of it."""

import json
import subprocess
import sys

from benchmarks.__main__ import Run, run, table
from benchmarks.figures import MARK, Figure, figure
from tests.flows.stack import REPOSITORY


def test_a_figure_is_read_back_as_it_was_told(capsys):
    figure("sends", 312.4, "/s", at_least=300)
    assert Figure.read(capsys.readouterr().out) == Figure("sends", 312.4, "/s", at_least=300)
    assert Figure.read("sends: 312/s") is None


def test_a_row_says_whether_the_aim_was_met():
    assert Figure("p99", 59.94, "ms", at_most=60).row == "| p99 | 60 ms | at most 60 ms | met |"
    assert Figure("lost", 0, at_most=0).row == "| lost | 0 | at most 0 | met |"
    assert Figure("lost", 1, at_most=0).verdict == "**missed**"
    assert Figure("ratio", 1.8, at_least=3.5).verdict == "**missed**"
    assert Figure("rate", 1234.5, "/s").row == "| rate | 1,234 /s |  |  |"


def test_the_table_tells_of_what_broke():
    text = table([Run("accept", [Figure("ratio", 3, at_least=2)]), Run("lists", [], "It ended with 1.")])
    assert "## accept\n\n| what | figure | aim | |\n|---|---|---|---|\n| ratio | 3 | at least 2 | met |\n" in text
    assert "## lists\n\nIt ended with 1.\n" in text


def test_a_benchmark_that_is_not_there_is_refused_with_those_that_are():
    command = [sys.executable, "-m", "benchmarks", "nothing"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "there is no benchmark nothing" in done.stderr


def test_one_that_breaks_is_told_and_its_figures_are_kept(tmp_path, monkeypatch, capsys):
    folder = tmp_path / "benchmarks"
    folder.mkdir()
    told = MARK + json.dumps({"name": "n", "value": 1, "unit": ""})
    (folder / "accept.py").write_text(f"print('for people'); print({told!r}); raise SystemExit(3)")
    monkeypatch.setattr("benchmarks.__main__.REPOSITORY", tmp_path)
    assert run("accept") == Run("accept", [Figure("n", 1, "")], "It ended with 3.")
    assert "for people" in capsys.readouterr().out
