"""A proxy in front of the running service that injects network errors."""

import json
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import urlsplit


class Answer(NamedTuple):
    status: int
    headers: dict[str, str] = {}
    body: bytes = b""


def problem(status: int, code: str, **headers: str) -> Answer:
    body = json.dumps({"status": status, "code": code, "detail": "No."}).encode()
    return Answer(status, {"Content-Type": "application/problem+json", **headers}, body)


LOSE = "lose"
HANG = "hang"
# A fault, the requests that a client makes then, and the name of the error that it raises.
RETRY_CASES = {
    "limit": (problem(429, "rate_limit_exceeded", **{"Retry-After": "1"}), 2, None),
    "an hour": (problem(429, "rate_limit_exceeded", **{"Retry-After": "3600"}), 1, "RateLimitExceeded"),
    "limit of a proxy": (
        Answer(429, {"Content-Type": "text/html", "Retry-After": "1"}, b"<h1>Slow down</h1>"),
        2,
        None,
    ),
    "hours of a proxy": (Answer(429, {"Content-Type": "text/html", "Retry-After": "7200"}), 1, "RateLimitExceeded"),
    "proxy without a time": (Answer(429, {"Content-Type": "text/html"}), 1, "RateLimitExceeded"),
    "quota": (problem(429, "quota_exceeded"), 1, "QuotaExceeded"),
    "gateway": (Answer(502, {"Content-Type": "text/html"}, b"<h1>Bad gateway</h1>"), 2, None),
    "website": (Answer(200, {"Content-Type": "text/html"}, b"<h1>Hello</h1>"), 1, "ConnectionFailed"),
    "redirect": (Answer(301, {"Location": "https://elsewhere.example"}), 1, "ApiError"),
    "lost": (LOSE, 2, None),
}


@dataclass
class Proxy:
    """Requests get `faults` in order, then pass. LOSE reaches the service; an Answer and HANG do not.

    seen, paths: the headers and the paths of the requests.
    """

    target: str
    faults: list[Any]
    seen: list[Any] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    url: str = ""
    is_done: threading.Event = field(default_factory=threading.Event)

    def next_fault(self) -> Any:
        return self.faults.pop(0) if self.faults else None


@contextmanager
def proxy(target: str, *faults: Any) -> Iterator[Proxy]:
    state = Proxy(target, list(faults))
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(state))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    state.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield state
    finally:
        state.is_done.set()
        server.shutdown()
        thread.join()
        server.server_close()


def _handler(state: Proxy) -> Callable[..., BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))) or None
            state.seen.append(self.headers)
            state.paths.append(self.path)
            fault = state.next_fault()
            if fault == HANG:
                state.is_done.wait()
                return
            answer = fault if isinstance(fault, Answer) else _forward(state.target + self.path, self, body)
            if fault != LOSE:
                self._answer(answer)

        do_POST = do_PATCH = do_DELETE = do_GET  # noqa: N815 - http.server's names

        def _answer(self, answer: Answer) -> None:
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, *_: Any) -> None:
            pass

    return Handler


def _forward(url: str, handler: BaseHTTPRequestHandler, body: bytes | None) -> Answer:
    headers = {name: value for name, value in handler.headers.items() if name.lower() not in {"host", "connection"}}
    request = urllib.request.Request(url, body, headers, method=handler.command)
    try:
        with urllib.request.urlopen(request, timeout=10) as reply:
            return Answer(reply.status, {"Content-Type": reply.headers["Content-Type"]}, reply.read())
    except urllib.error.HTTPError as error:
        return Answer(error.code, {"Content-Type": error.headers["Content-Type"]}, error.read())


class Relay:
    """Relays connections to the service byte by byte, and cuts them on demand."""

    def __init__(self, target: str, port: int) -> None:
        self.target = (str(urlsplit(target).hostname), int(urlsplit(target).port or 0))
        self.server = socket.create_server(("127.0.0.1", port))
        self.url = f"http://127.0.0.1:{self.server.getsockname()[1]}"
        self.accepted = 0
        self.ended = 0
        self.sockets: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Close all connections."""
        for one in self.sockets:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with suppress(OSError):
            self.server.shutdown(socket.SHUT_RDWR)
        self.server.close()
        self.cut()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self.server.accept()
                far = socket.create_connection(self.target)
                self.sockets += [near, far]
                self.accepted += 1
                threading.Thread(target=self._send, args=(near, far), daemon=True).start()
                threading.Thread(target=_copy, args=(far, near), daemon=True).start()

    def _send(self, near: socket.socket, far: socket.socket) -> None:
        _copy(near, far)
        self.ended += 1


def _copy(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            sink.sendall(data)
    for one in (source, sink):
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)


@contextmanager
def relay(target: str, *, port: int = 0) -> Iterator[Relay]:
    """Relay connections to the host and port of a URL. port: where it listens; by default any."""
    running = Relay(target, port)
    try:
        yield running
    finally:
        running.close()
        for one in running.sockets:
            one.close()
