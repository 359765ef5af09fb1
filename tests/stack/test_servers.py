"""Servers of tests and benchmarks: a test that waits for one ends with it."""

import os
import sys
import time

import pytest

from tests.stack.servers import running_server
from tests.stack.stack import Stack, free_port, listens, wait_for
from tools.benchmarks.processes import other_process

FAILS = [sys.executable, "-c", "import sys; print('starting'); sys.exit('no such plugin')"]
LISTENS = """
import socket, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print(child.pid, flush=True)
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
child.wait()
"""


def end(_ports):
    raise SystemExit(3)


def test_a_server_that_ends_before_it_is_ready_is_reported_with_its_output(tmp_path):
    started = time.monotonic()
    with (
        pytest.raises(
            AssertionError, match=r"(?s)has ended with 1: python.* is ready.*starting.*no such plugin"
        ) as error,
        running_server(FAILS, is_ready=lambda: False, log=tmp_path / "log", seconds=600),
    ):
        pass
    assert time.monotonic() - started < 300
    assert str(tmp_path / "log") in str(error.value)


def test_a_server_is_stopped_with_the_processes_that_it_started(tmp_path):
    port, log = free_port(), tmp_path / "log"
    with running_server([sys.executable, "-c", LISTENS, str(port)], is_ready=lambda: listens(port), log=log) as server:
        child = int(log.read_text())
        os.kill(child, 0)
    assert server.returncode is not None
    assert not listens(port)
    wait_for(lambda: has_ended(child), seconds=30, what="the child has ended")


def test_a_process_of_the_stack_that_ends_is_reported_with_its_log(tmp_path):
    # It has no manage.py.
    stack = Stack(logs=tmp_path, environment={"INBOX_PORT": str(free_port())}, redis=None, repository=tmp_path)
    with pytest.raises(AssertionError, match=r"(?s)has ended with 2: inbox is ready.*inbox\.log.*can't open file"):
        stack.start("inbox")


def test_a_server_in_another_process_that_ends_is_reported():
    with pytest.raises(AssertionError, match="the process of end has ended"), other_process(end):
        pass


def has_ended(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False
