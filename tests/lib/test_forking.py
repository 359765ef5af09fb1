"""Forked programs: restarted when they exit, stopped together, and never left behind."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from embedded.locations import REPOSITORY
from tests.embedded.conftest import wait_until

SCRIPT = """
import time
from lib.forking import fork_programs
program = fork_programs({"a": lambda: time.sleep(1000), "b": lambda: time.sleep(1000)})
if program:
    program()
"""


@pytest.fixture
def parent() -> Iterator["subprocess.Popen[bytes]"]:
    """A process with two forked programs."""
    with subprocess.Popen([sys.executable, "-c", SCRIPT], cwd=REPOSITORY) as process:
        assert wait_until(lambda: len(children(process.pid)) == 2)
        yield process
        process.kill()


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def is_running(pid: int) -> bool:
    status = Path(f"/proc/{pid}/stat")
    return status.exists() and status.read_text().rpartition(")")[2].split()[0] != "Z"


def test_a_killed_process_is_restarted(parent):
    killed, other = children(parent.pid)
    os.kill(killed, signal.SIGKILL)
    assert wait_until(lambda: len(children(parent.pid)) == 2 and killed not in children(parent.pid), seconds=5)
    assert other in children(parent.pid)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_all(parent, number):
    started = children(parent.pid)
    parent.send_signal(number)
    assert parent.wait(timeout=5) == 0
    assert not any(is_running(pid) for pid in started)


def test_no_process_survives_a_killed_parent(parent):
    started = children(parent.pid)
    parent.kill()
    parent.wait()
    assert wait_until(lambda: not any(is_running(pid) for pid in started), seconds=5)
