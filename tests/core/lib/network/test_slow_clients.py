"""The thread that writes to slow clients ends its responses before the process exits."""

import socket
import threading
import time

import pytest

from core.lib.network.slow_clients import REST, slow_clients, write


@pytest.fixture
def clients():
    return slow_clients()


def serve(clients, send, *, kind="stream"):
    """Send a response to a client; return its end of the connection."""
    ours, theirs = socket.socketpair()
    theirs.settimeout(30)
    clients.serve(ours, send, kind=kind, share="", seconds=60)
    return theirs


def test_a_stop_ends_responses_without_an_end_and_logs_nothing(clients, caplog):
    has_begun = threading.Event()

    async def stream(_reader, writer):
        while True:
            await clients.query(time.sleep, 0.01)
            await write(writer, b"x")
            has_begun.set()

    with serve(clients, stream) as client:
        assert has_begun.wait(30)
        clients.stop(30)
        while client.recv(1000):
            pass
    assert caplog.records == []
    assert not clients.open


def test_a_stop_waits_for_responses_that_end(clients):
    async def send(_reader, writer):
        for _ in range(5):
            await clients.query(time.sleep, 0.01)
            await write(writer, b"x")

    with serve(clients, send, kind=REST) as client:
        clients.stop(30)
        assert client.recv(5, socket.MSG_WAITALL) == b"xxxxx"
