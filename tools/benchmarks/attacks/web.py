"""Attacks on web with one key or without any, that go on until they are left."""

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from threading import Event, Thread

from tests.stack.stack import Stack

READERS = 24
UNFINISHED = 200
CALLERS = 12
# The callers together make at most the 50 requests a second of a workspace.
LEGAL_PAUSE = CALLERS / 50
LARGE = "x" * 900_000
LOOPS = "{{#each a}}{{#each b}}{{x}}{{/each}}{{/each}}"


@contextmanager
def slow_readers(stack: Stack) -> Iterator[None]:
    """Clients with one key that read a byte a second of large responses and exports."""
    email = stack.send(html=f"<p>{LARGE}</p>").body["id"]
    starts = [f"GET /v1/emails/{email} HTTP/1.1", "GET /v1/emails/export HTTP/1.1"]
    requests = [stack.request_head(starts[number % 2]) for number in range(READERS)]
    with _connections(stack, requests, receive_bytes=4096) as clients, _repeated(lambda: _read_byte(clients)):
        yield


@contextmanager
def unfinished_requests(stack: Stack) -> Iterator[None]:
    """Heads and bodies that stop, without a key; a byte a second follows."""
    body = stack.request_head("POST /v1/emails/send HTTP/1.1", "Content-Length: 100000")
    requests = [b"GET / HTTP/1.1\r\nX: ", body] * (UNFINISHED // 2)
    with _connections(stack, requests) as clients, _repeated(lambda: _write_byte(clients)):
        yield


@contextmanager
def heavy_batches(stack: Stack) -> Iterator[None]:
    """Batches at the limit of the steps of rendering, with one key."""
    template = {"name": "heavy", "alias": "heavy", "subject": "s", "htmlContent": LOOPS}
    stack.call("POST", "/templates", template)
    data = {"a": [1] * 60, "b": [1] * 60}
    recipients = [{"to": f"r{number}@example.com", "templateData": data} for number in range(300)]
    batch = {"from": "hello@demo.example", "templateId": "heavy", "recipients": recipients}
    with ExitStack() as callers:
        for _ in range(CALLERS):
            callers.enter_context(_repeated(lambda: stack.call("POST", "/emails/batch", batch), pause=LEGAL_PAUSE))
        yield


ATTACKS: dict[str, Callable[[Stack], AbstractContextManager[None]]] = {
    "slow readers": slow_readers,
    "unfinished requests": unfinished_requests,
    "heavy batches": heavy_batches,
}


@contextmanager
def _connections(stack: Stack, requests: list[bytes], *, receive_bytes: int = 0) -> Iterator[list[socket.socket]]:
    with ExitStack() as opened:
        clients = []
        for data in requests:
            client = opened.enter_context(stack.connect(receive_bytes=receive_bytes))
            client.sendall(data)
            clients.append(client)
        yield clients


@contextmanager
def _repeated(act: Callable[[], object], *, pause: float = 1.0) -> Iterator[None]:
    is_over = Event()

    def repeat() -> None:
        while not is_over.wait(pause):
            with suppress(OSError, json.JSONDecodeError):
                act()

    thread = Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _read_byte(clients: list[socket.socket]) -> None:
    for client in clients:
        with suppress(OSError):
            client.recv(1, socket.MSG_DONTWAIT)


def _write_byte(clients: list[socket.socket]) -> None:
    for client in clients:
        with suppress(OSError):
            client.send(b"x", socket.MSG_DONTWAIT)
