"""bin/test: throw-away servers, pytest's exit code, and nothing left behind."""

import signal
from pathlib import Path

from tests.embedded.conftest import StandIn, eventually, processes_in

# The settings of the repository's own tests are not for these.
PYTEST = ("-c", "/dev/null", "-p", "no:django", "-p", "no:cacheprovider", "-q", "-s")

TEST = """
import os, tempfile, time
import psycopg, pytest, redis

def test_servers():
    print("home:", tempfile.gettempdir(), flush=True)
    psycopg.connect(os.environ["DATABASE_URL"]).execute("SELECT 1")
    assert redis.Redis.from_url(os.environ["REDIS_URL"]).ping()
    assert os.path.exists(os.environ["POSTRIDER_TEST_PG_BIN"] + "/pg_dump")

@pytest.mark.long
def test_long():
    time.sleep(1000)
"""


def home_of(output: str) -> Path:
    return Path(output.split("home: ", 1)[1].split("\n", 1)[0])


def test_it_runs_tests_with_servers_and_returns_their_exit_code(stand_in: StandIn) -> None:
    test = stand_in.path / "test_it.py"
    test.write_text(TEST + "def test_fails(): raise AssertionError")
    done = stand_in.finish("test", str(test), *PYTEST)
    assert done.returncode == 1
    assert "1 failed, 1 passed, 1 deselected" in done.stdout
    home = home_of(done.stdout)
    assert not home.exists()
    assert not processes_in(home)


def test_a_killed_run_leaves_nothing(stand_in: StandIn) -> None:
    test = stand_in.path / "test_it.py"
    test.write_text(TEST)
    process = stand_in.start("test", "--long", str(test), *PYTEST)
    assert process.stdout
    home = home_of(next(line for line in process.stdout if "home: " in line) + "\n")
    process.send_signal(signal.SIGKILL)
    assert eventually(lambda: not home.exists())
    assert not processes_in(home, stand_in.path)
