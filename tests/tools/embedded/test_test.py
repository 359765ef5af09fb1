"""bin/test: throw-away servers, pytest's exit code, and clean-up."""

import signal
import subprocess
from pathlib import Path

import pytest

from tests.tools.embedded.conftest import FakeProject, processes_in, wait_until
from tools.embedded.test import MAX_REPEATED, run_all_tests

# Ignore the pytest settings of the repository.
PYTEST = ("-c", "/dev/null", "-p", "no:django", "-p", "no:cacheprovider", "-q", "-s")

TEST = """
import os, tempfile, time
import psycopg, pytest, redis

def test_servers():
    print("directory:", tempfile.gettempdir(), flush=True)
    psycopg.connect(os.environ["DATABASE_URL"]).execute("SELECT 1")
    assert redis.Redis.from_url(os.environ["REDIS_URL"]).ping()
    assert os.path.exists(os.environ["POSTRIDER_TEST_PG_BIN"] + "/pg_dump")

@pytest.mark.long
def test_long():
    time.sleep(1000)
"""


def directory_of(output: str) -> Path:
    return Path(output.split("directory: ", 1)[1].split("\n", 1)[0])


def test_tests_run_with_servers_and_their_exit_code_is_returned(fake_project: FakeProject) -> None:
    test = fake_project.path / "test_it.py"
    test.write_text(TEST + "def test_fails(): raise AssertionError")
    done = fake_project.run("test", str(test), *PYTEST)
    assert done.returncode == 1
    assert "1 failed, 1 passed, 1 deselected" in done.stdout
    directory = directory_of(done.stdout)
    assert not directory.exists()
    assert not processes_in(directory)


def test_a_killed_run_leaves_no_files_or_processes(fake_project: FakeProject) -> None:
    test = fake_project.path / "test_it.py"
    test.write_text(TEST)
    process = fake_project.start("test", "--long", str(test), *PYTEST)
    assert process.stdout
    directory = directory_of(next(line for line in process.stdout if "directory: " in line) + "\n")
    process.send_signal(signal.SIGKILL)
    assert wait_until(lambda: not directory.exists())
    # The watchdog removes the directory last, then ends itself.
    assert wait_until(lambda: not processes_in(directory, fake_project.path))


FAILS_ALWAYS = """
def test_passes():
    pass

def test_fails():
    raise AssertionError
"""
FAILS_ONCE = """
import pathlib

def test_passes():
    pass

def test_fails():
    earlier_run = pathlib.Path("earlier_run")
    assert earlier_run.exists(), earlier_run.touch()
"""


def run_file(tmp_path: Path, source: str, runs: dict[str, list[str]]) -> tuple[int, list[str]]:
    """Return the exit code of all runs of a test file, and the output of each."""
    (tmp_path / "test_it.py").write_text(source)
    outputs: list[str] = []

    def run(command: list[str]) -> int:
        arguments = [*command, "-c", "/dev/null", "--rootdir", str(tmp_path), "-p", "no:django"]
        done = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, check=False)
        outputs.append(done.stdout)
        return done.returncode

    return run_all_tests(run, runs, results=tmp_path / "results"), outputs


def test_a_failed_test_runs_again_alone_and_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results = tmp_path / "results"
    results.mkdir()
    (results / "long.xml").write_text("of the last run")
    code, outputs = run_file(tmp_path, FAILS_ONCE, {"quick": ["-n", "2"], "full": ["-n", "1"]})
    assert code == 0
    assert "1 failed, 1 passed" in outputs[0]
    assert "test_passes" not in outputs[1]
    assert len(outputs) == 3
    names = ["full.xml", "quick-repeated.xml", "quick.xml", "repeated.txt"]
    assert sorted(path.name for path in results.iterdir()) == names
    assert (results / "repeated.txt").read_text() == "quick: test_it.py::test_fails\n"
    printed = capsys.readouterr().out
    assert "\nquick: test_it.py::test_fails\n" in printed
    # Both runs, and the repetition.
    assert "       5  test_it.py\n" in printed


def test_a_test_that_fails_again_fails_the_run_and_the_durations_are_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, outputs = run_file(tmp_path, FAILS_ALWAYS, {"quick": ["-n", "2"], "full": ["-n", "1"]})
    assert (code, len(outputs)) == (1, 2)
    assert "       3  test_it.py\n" in capsys.readouterr().out


@pytest.mark.parametrize(("failures", "code"), [(MAX_REPEATED, 0), (MAX_REPEATED + 1, 1)])
def test_many_repeated_tests_fail_the_run(tmp_path: Path, failures: int, code: int) -> None:
    source = f"""
import pathlib, pytest

@pytest.mark.parametrize("n", range({failures}))
def test_fails(n):
    earlier_run = pathlib.Path(f"earlier_run{{n}}")
    assert earlier_run.exists(), earlier_run.touch()
"""
    assert run_file(tmp_path, source, {"quick": []})[0] == code


def test_nothing_is_said_about_repetitions_if_no_test_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_file(tmp_path, "def test_passes(): pass", {"quick": []})[0] == 0
    assert "again" not in capsys.readouterr().out
    assert not (tmp_path / "results" / "repeated.txt").exists()
