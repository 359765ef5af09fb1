"""Forked programs: restarted when they exit, stopped together, and never left behind; programs that run once."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.tools.embedded.conftest import wait_until
from tools.embedded.locations import REPOSITORY

SCRIPT = """
import time
from core.lib.forking import fork_programs
program = fork_programs({"a": lambda: time.sleep(1000), "b": lambda: time.sleep(1000)})
if program:
    program()
"""

# Each line is one write, because the processes write at the same time.
ONCE = """
import os, sys, time
from core.lib.forking import fork_once, fork_programs
def write(line):
    os.write(1, (line + chr(10)).encode())
def wait():
    write("waiting")
    time.sleep(1000)
fork_once(wait if "waits" in sys.argv else lambda: write(f"from {os.getppid()}"))
fork_once(lambda: 1 / 0)
if program := fork_programs({"a": wait}):
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
    assert wait_until(lambda: len(children(parent.pid)) == 2 and killed not in children(parent.pid), seconds=60)
    assert other in children(parent.pid)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_all(parent, number):
    started = children(parent.pid)
    parent.send_signal(number)
    assert parent.wait(timeout=60) == 0
    assert not any(is_running(pid) for pid in started)


def test_no_process_survives_a_killed_parent(parent):
    started = children(parent.pid)
    parent.kill()
    parent.wait()
    assert wait_until(lambda: not any(is_running(pid) for pid in started), seconds=60)


@contextmanager
def running_once(*arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """Run ONCE, which forks two programs that run once and one that is kept running."""
    command = [sys.executable, "-c", ONCE, *arguments]
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def test_a_program_that_runs_once_exits_and_an_error_in_it_stops_nothing():
    with running_once() as process:
        assert {process.stdout.readline() for _ in range(2)} == {f"from {process.pid}\n", "waiting\n"}
        # The parent has waited for the two programs.
        assert wait_until(lambda: len(children(process.pid)) == 1, seconds=60)
        process.terminate()
        assert process.wait(timeout=60) == 0
        assert process.stdout.read() == ""


def test_a_program_that_runs_once_does_not_outlive_its_parent():
    with running_once("waits") as process:
        assert [process.stdout.readline() for _ in range(2)] == ["waiting\n"] * 2
        started = children(process.pid)
        process.kill()
        process.wait()
        assert wait_until(lambda: not any(is_running(pid) for pid in started), seconds=60)
