"""What benchmarks tell, and the table that is made of it."""

import json
import subprocess
import sys

from benchmarks.__main__ import Run, renew, run, section
from benchmarks.figures import MARK, Figure, figure
from tests.stack.stack import REPOSITORY


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


def test_a_section_tells_what_was_measured_or_what_broke():
    text = section(Run("accept", [Figure("ratio", 3, at_least=2)]))
    assert text.startswith("accept\n\n")
    assert text.endswith("\n\n| what | figure | aim | |\n|---|---|---|---|\n| ratio | 3 | at least 2 | met |")
    assert section(Run("lists", [], "It ended with 1.")).endswith("\n\nIt ended with 1.")


def test_a_run_renews_its_own_section_of_the_table_alone(tmp_path):
    table = tmp_path / "figures.md"
    renew(table, Run("lists", [Figure("list", 7, "ms")]))
    renew(table, Run("accept", [Figure("ratio", 3)]))
    before = table.read_text()
    renew(table, Run("lists", [Figure("list", 8, "ms")]))
    assert table.read_text().startswith("# Figures\n\nWritten by")
    assert table.read_text().split("\n## ")[1] == before.split("\n## ")[1]
    assert [part.partition("\n")[0] for part in before.split("\n## ")[1:]] == ["accept", "lists"]
    assert "| list | 8 ms |" in table.read_text()
    assert "| list | 7 ms |" not in table.read_text()
    assert table.read_text().endswith("|\n")


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
