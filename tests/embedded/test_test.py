"""bin/test: throw-away servers, pytest's exit code, and clean-up."""

import signal
import subprocess
from pathlib import Path

import pytest

from embedded.test import run_all_tests
from tests.embedded.conftest import FakeProject, processes_in, wait_until

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


@pytest.mark.parametrize(("source", "code"), [(FAILS_ONCE, 0), (FAILS_ALWAYS, 1)])
def test_a_failed_test_runs_again_alone_and_fails_the_run_if_it_fails_again(
    tmp_path: Path, source: str, code: int
) -> None:
    (tmp_path / "test_it.py").write_text(source)
    outputs: list[str] = []

    def run(command: list[str]) -> int:
        arguments = [*command, "-c", "/dev/null", "--rootdir", str(tmp_path), "-p", "no:django"]
        done = subprocess.run(arguments, cwd=tmp_path, capture_output=True, text=True, check=False)
        outputs.append(done.stdout)
        return done.returncode

    assert run_all_tests(run, [["-n", "2"], ["-n", "1"]]) == code
    assert "1 failed, 1 passed" in outputs[0]
    assert "test_passes" not in outputs[1]
    assert len(outputs) == (3 if code == 0 else 2)
