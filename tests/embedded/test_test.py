"""bin/test: throw-away servers, pytest's exit code, and clean-up."""

import signal
from pathlib import Path

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
