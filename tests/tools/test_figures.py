"""The figures that benchmarks report, and the file that is written from them."""

import json
import re
import subprocess
import sys

import pytest

from tests.rows import each
from tests.stack.stack import REPOSITORY
from tools.benchmarks.__main__ import (
    TIME_LIMITS_MINUTES,
    BenchmarkRun,
    format_section,
    main,
    run_benchmark,
    update_table,
)
from tools.benchmarks.figures import MARK, BenchmarkFigure, record_figure, record_rounds
from tools.benchmarks.footprint import user_environment


@pytest.fixture
def programs(tmp_path, monkeypatch):
    """Return the empty directory of the programs of benchmarks."""
    monkeypatch.setattr("tools.benchmarks.__main__.REPOSITORY", tmp_path)
    folder = tmp_path / "tools" / "benchmarks"
    folder.mkdir(parents=True)
    return folder


def test_a_reported_figure_is_parsed(capsys):
    record_figure("sends", 312.4, "/s", at_least=300)
    assert BenchmarkFigure.parse(capsys.readouterr().out) == BenchmarkFigure("sends", 312.4, "/s", at_least=300)
    assert BenchmarkFigure.parse("sends: 312/s") is None


def test_a_row_shows_whether_the_target_was_met():
    assert BenchmarkFigure("p99", 59.94, "ms", at_most=60).row == "| p99 | 60 ms | at most 60 ms | met |"
    assert BenchmarkFigure("lost", 0, at_most=0).row == "| lost | 0 | at most 0 | met |"
    assert BenchmarkFigure("lost", 1, at_most=0).result == "**missed**"
    assert BenchmarkFigure("ratio", 1.8, at_least=3.5).result == "**missed**"
    assert BenchmarkFigure("rate", 1234.5, "/s").row == "| rate | 1,234 /s |  |  |"


@each(
    ("rounds", "row"),
    [
        ([3.9, 5.2, 4.1], "| ratio | 4.1 (3.9 to 5.2) | at least 4 | met |"),
        ([3.9], "| ratio | 3.9 | at least 4 | **missed** |"),
    ],
)
def test_rounds_are_shown_as_their_median_with_the_lowest_and_the_highest(capsys, rounds, row):
    record_rounds("ratio", rounds, at_least=4)
    figure = BenchmarkFigure.parse(capsys.readouterr().out)
    assert figure
    assert figure.row == row


def test_the_number_of_rounds_is_passed_on(programs, tmp_path, monkeypatch):
    (programs / "peers.py").write_text(
        "import sys; from pathlib import Path; Path('given').write_text(' '.join(sys.argv[1:]))"
    )
    monkeypatch.setattr("sys.argv", ["benchmarks", "peers", "--rounds", "5", "--table", str(tmp_path / "figures.md")])
    assert main() == 1
    assert (tmp_path / "given").read_text() == "--rounds 5"


def test_a_section_shows_the_figures_or_the_failure():
    text = format_section(BenchmarkRun("accept", [BenchmarkFigure("ratio", 3, at_least=2)], load=1.25))
    assert text.startswith("accept\n\n")
    assert ", load average 1.2 before and " in text
    assert text.endswith("\n\n| measurement | result | target | |\n|---|---|---|---|\n| ratio | 3 | at least 2 | met |")
    assert format_section(BenchmarkRun("lists", [], "Failed with exit code 1.")).endswith(
        "\n\nFailed with exit code 1."
    )


def test_a_run_replaces_only_its_own_section(tmp_path):
    table = tmp_path / "figures.md"
    update_table(table, BenchmarkRun("lists", [BenchmarkFigure("list", 7, "ms")]))
    update_table(table, BenchmarkRun("accept", [BenchmarkFigure("ratio", 3)]))
    before = table.read_text()
    update_table(table, BenchmarkRun("lists", [BenchmarkFigure("list", 8, "ms")]))
    assert table.read_text().startswith("# Figures\n\nBenchmark results, written by")
    assert table.read_text().split("\n## ")[1] == before.split("\n## ")[1]
    assert [part.partition("\n")[0] for part in before.split("\n## ")[1:]] == ["accept", "lists"]
    assert "| list | 8 ms |" in table.read_text()
    assert "| list | 7 ms |" not in table.read_text()
    assert table.read_text().endswith("|\n")


@pytest.mark.full
def test_a_server_is_started_for_the_benchmarks_if_none_is_named(programs, tmp_path, monkeypatch):
    (programs / "batch.py").write_text(
        "import os, psycopg; from pathlib import Path\n"
        "with psycopg.connect(os.environ['DATABASE_URL']) as connection:\n"
        "    Path('found').write_text(connection.execute('SHOW fsync').fetchone()[0])\n"
        "assert os.environ['SECRET_KEY'] and os.environ['APP_KEYS'] and os.environ['REDIS_URL']"
    )
    monkeypatch.setattr("sys.argv", ["benchmarks", "batch", "--table", str(tmp_path / "figures.md")])
    for name in ("DATABASE_URL", "SECRET_KEY", "APP_KEYS", "REDIS_URL"):
        monkeypatch.delenv(name)
    assert main() == 1
    assert (tmp_path / "found").read_text() == "on"
    assert "No figures were reported" in (tmp_path / "figures.md").read_text()


@pytest.mark.full
def test_every_benchmark_works_in_its_smallest_size():
    command = [sys.executable, "-m", "tools.benchmarks", "--smoke"]
    done = subprocess.run(command, cwd=REPOSITORY, env=user_environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_an_unknown_benchmark_is_refused():
    command = [sys.executable, "-m", "tools.benchmarks", "nothing"]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "unknown benchmark: nothing" in done.stderr


def test_a_failed_benchmark_keeps_its_figures(programs, capsys):
    line = MARK + json.dumps({"name": "n", "value": 1, "unit": ""})
    (programs / "accept.py").write_text(f"print('for people'); print({line!r}); raise SystemExit(3)")
    assert run_benchmark("accept") == BenchmarkRun("accept", [BenchmarkFigure("n", 1, "")], "Failed with exit code 3.")
    assert "for people" in capsys.readouterr().out


def test_every_benchmark_is_in_the_table():
    programs = [
        path for path in (REPOSITORY / "tools" / "benchmarks").rglob("*.py") if "__name__ ==" in path.read_text()
    ]
    names = {
        str(path.relative_to(REPOSITORY / "tools" / "benchmarks").with_suffix("")).replace("/", ".")
        for path in programs
    }
    # The attack and the queue are processes of other benchmarks.
    helpers = {"__main__", "attacks.receiving", "peers.send_queued"}
    assert {name.removesuffix(".__main__") for name in names - helpers} == set(TIME_LIMITS_MINUTES)


def test_a_smoke_run_names_the_benchmarks_that_fail_with_their_output(programs, tmp_path, monkeypatch, capsys):
    missed = MARK + json.dumps({"name": "n", "value": 1, "unit": "", "at_least": 2})
    (programs / "batch.py").write_text(f"import os; assert 'BENCHMARKS_SMOKE' in os.environ; print({missed!r})")
    (programs / "lists.py").write_text("print('before'); assert False, 'no such table'")
    (programs / "pages.py").write_text("print('nothing was measured')")
    monkeypatch.setenv("BENCHMARKS_SMOKE", "")
    table = tmp_path / "figures.md"
    monkeypatch.setattr("sys.argv", ["benchmarks", "--smoke", "batch", "lists", "pages", "--table", str(table)])
    assert main() == 1
    output = capsys.readouterr().out
    assert re.search(r"^batch: \d+ s$", output, re.MULTILINE)
    assert re.search(r"before\n(?s:.*)no such table\nlists: \d+ s\. Failed with exit code 1\.\n", output)
    assert re.search(r"^pages: \d+ s\. No figures were reported", output, re.MULTILINE)
    assert output.endswith("s. Failed: lists, pages.\n")
    assert not table.exists()
    monkeypatch.setattr("sys.argv", ["benchmarks", "--smoke", "batch"])
    assert main() == 0
