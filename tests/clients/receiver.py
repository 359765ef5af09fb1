"""A receiver of webhooks on this machine, which keeps the requests that it gets."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.stack.stack import wait_for


class Receiver(ThreadingHTTPServer):
    """received: headers and body of each request. status: that of the responses."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.received: list[tuple[Any, bytes]] = []
        self.status = 200
        self.url = f"http://127.0.0.1:{self.server_address[1]}/hook"


class Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        self.server.received.append((self.headers, self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(self.server.status)
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def running_receiver() -> Iterator[Receiver]:
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def wait_for_request(receiver: Receiver, email_id: str) -> Any:
    """Return headers and body of the first request about an email."""
    about = lambda: next((one for one in list(receiver.received) if email_id.encode() in one[1]), None)  # noqa: E731
    return wait_for(about, seconds=60, what="the request")
