"""While PostgreSQL is away, each process logs a line for each cause, not one for each request, task or attempt."""

import json
import os
import signal
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import replace

import pytest

from tests.stack.stack import running_stack, wait_for
from tools.embedded.servers import postgres

pytestmark = pytest.mark.stack

SECONDS = 15
PROCESSES = ("inbox", "web", "workers", "inbound", "submission", "beat")
SERVERS = {"web": 2, "workers": 2}
DOWN, UP = "the database does not respond", "the database responds again"


@pytest.fixture
def database(monkeypatch):
    """A server that may stop: its URL is that of this test."""
    servers = [postgres.start_throw_away()]
    monkeypatch.setenv("DATABASE_URL", servers[0].url)
    monkeypatch.delenv("POSTRIDER_STACK_TEMPLATE", raising=False)
    yield servers
    servers[-1].stop()


def stop(servers) -> None:
    os.kill(servers[-1].pid, signal.SIGINT)
    servers[-1].process.wait(90)


def start(servers) -> None:
    stopped = servers[-1]
    started = postgres.start(stopped.temporary_directory, settings=postgres.THROW_AWAY, port=stopped.port)
    servers.append(replace(started, temporary_directory=stopped.temporary_directory))


def messages(log: str, *levels: str) -> Counter[str]:
    """Return the messages of some levels, and how often each was logged."""
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    return Counter(line["message"] for line in lines if line["level"] in levels)


def test_the_loss_of_the_database_is_a_line_for_each_cause_and_the_stop_is_clean(tmp_path, database):
    servers = running_stack(tmp_path, WEB_CONCURRENCY="2", WORKER_CONCURRENCY="2")
    with servers as stack, ExitStack() as connections:
        stack.start(*PROCESSES)
        stream = connections.enter_context(stack.connect())
        stream.sendall(stack.request_head("GET /v1/events/stream HTTP/1.1"))
        assert stack.send().status == 202
        wait_for(stack.all_delivered, seconds=60, what="an email")
        stop(database)
        until = time.monotonic() + SECONDS
        statuses = set()
        while time.monotonic() < until:
            statuses |= {stack.send().status, stack.call("GET", "/emails").status}
            time.sleep(0.2)
        assert statuses == {503}
        start(database)
        wait_for(lambda: stack.send().status == 202, seconds=60, what="an accepted email")
        wait_for(stack.all_delivered, seconds=120, what="all emails")
        for name in SERVERS:
            log = stack.logs / f"{name}.log"
            wait_for(lambda log=log: UP in log.read_text(), seconds=60, what=f"the end of the outage in {log}")
        logs = {name: (stack.logs / f"{name}.log").read_text() for name in PROCESSES}
        for name in PROCESSES:
            stack.signal(name, signal.SIGTERM)
            assert stack.processes.pop(name).wait(90) in {0, -signal.SIGTERM}
        stopping = {name: (stack.logs / f"{name}.log").read_text()[len(log) :] for name, log in logs.items()}
    found = {name: messages(log, "warning", "error") for name, log in logs.items()}
    for name, processes in SERVERS.items():
        # The server that stops, and the one that is gone.
        assert 1 <= found[name].pop(DOWN) <= 2 * processes
        assert found[name].pop(UP) <= processes
    assert {name: dict(others) for name, others in found.items() if others} == {}
    assert {name: dict(errors) for name, log in stopping.items() if (errors := messages(log, "error"))} == {}
