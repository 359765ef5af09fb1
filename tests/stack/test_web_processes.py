"""Web processes: requests that wait, clients that stall, and processes that die delay no other request."""

import json
import multiprocessing
import os
import signal
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tests.core.lib.nameserver import SILENCE, NameServer
from tests.stack.stack import Reply, Stack, running_stack, wait_for

pytestmark = pytest.mark.stack
CORES = multiprocessing.cpu_count()
CALLERS = 20
CREATE_WORKSPACES = f"""
import json
from tests.conftest import make_account, make_domain, make_key
workspaces = [make_account(f"w{{number}}").workspace for number in range({CALLERS})]
print(json.dumps([(make_key(one), make_domain(one, "silent.example").id) for one in workspaces]))
print(make_domain(workspaces[0], "quick.example").id)
"""


@pytest.fixture(scope="module")
def stack(tmp_path_factory) -> Iterator[Stack]:
    with NameServer({"silent.example": SILENCE}) as names:
        host, port = names.address
        folder = tmp_path_factory.mktemp("web")
        with running_stack(folder, WEB_CONCURRENCY="0", DNS_SERVERS=f"{host}:{port}") as stack:
            stack.start("worker", "web")
            yield stack


@pytest.fixture(scope="module")
def callers(stack: Stack) -> tuple[list[tuple[Stack, str]], str]:
    """Twenty workspaces, each with its domain at a silent name server; and a domain of the first with a quick one."""
    made, quick = stack.manage("shell", "--verbosity", "0", "-c", CREATE_WORKSPACES).splitlines()
    return [(replace(stack, key=key), domain) for key, domain in json.loads(made)], quick


def test_a_check_is_answered_with_its_result(callers):
    ((caller, _), *_), quick = callers
    reply = caller.call("POST", f"/domains/{quick}/verify")
    assert reply.status == 200
    assert reply.body["lastCheckedAt"]


@pytest.mark.long
def test_a_check_with_a_silent_name_server_leaves_a_thread_to_its_workspace(callers):
    caller, domain = callers[0][-1]
    with ThreadPoolExecutor(4) as pool:
        # At most one of them waits in each process.
        checks = [pool.submit(verify, caller, domain) for _ in range(4)]
        time.sleep(0.5)
        seconds = [caller.call("GET", "/me").seconds for _ in range(10)]
    assert_no_wait(seconds, [check.result() for check in checks])


@pytest.mark.long
def test_checks_with_a_silent_name_server_delay_nobody(stack, callers):
    with ThreadPoolExecutor(CALLERS) as pool:
        checks = [pool.submit(verify, *caller) for caller in callers[0]]
        time.sleep(0.5)
        seconds = []
        while not all(check.done() for check in checks):
            seconds.append(stack.call("GET", "/me").seconds)
    assert_no_wait(seconds, [check.result() for check in checks])
    checked = "SELECT count(*) FROM domains_domain WHERE name = 'silent.example' AND checks_recorded > 0"
    wait_for(lambda: stack.query(checked) == [(CALLERS,)], seconds=60, what="all domains are checked")


def assert_no_wait(seconds: list[float], checks: list[Reply]) -> None:
    """Assert that no request waited for a check, which takes about four seconds, or more on a busy machine.

    A check of a domain that is being checked returns at once.
    """
    assert {check.status for check in checks} == {200}
    assert max(seconds) < min(check.seconds for check in checks if check.seconds > 3) / 2


def test_bytes_after_a_request_do_not_reset_the_connection(stack):
    for _ in range(CALLERS):
        with stack.connect() as client:
            client.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n\r\nGET /healthz HTTP/1.1\r\n")
            with client.makefile("rb") as answer:
                assert answer.read().startswith(b"HTTP/1.1 200 OK\r\n")


def test_killed_processes_are_replaced(stack):
    before = children(stack)
    for child in before:
        os.kill(child, signal.SIGKILL)
    assert [stack.call("GET", "/me").status for _ in range(5)] == [200] * 5
    # The arbiter may not have noticed the end of a process yet.
    wait_for(lambda: len(set(children(stack)) - set(before)) == CORES, seconds=60, what="all processes are replaced")


def test_a_reload_replaces_all_processes(stack):
    before = set(children(stack))
    os.kill(stack.processes["web"].pid, signal.SIGHUP)
    wait_for(lambda: children(stack) and not before & set(children(stack)), seconds=60, what="all processes are new")
    assert [stack.call("GET", "/me").status for _ in range(5)] == [200] * 5


def verify(caller: Stack, domain: str) -> Reply:
    return caller.call("POST", f"/domains/{domain}/verify")


def children(stack: Stack) -> list[int]:
    pid = stack.processes["web"].pid
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
