"""Provider's API on loopback: responds like Postmark and records requests."""

import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Answer = Callable[["Call"], None]


class Call(BaseHTTPRequestHandler):
    """One request. provider: the server that received it."""

    provider: "Provider"
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.asked = json.loads(body)
        self.provider.asked.append(self.asked)
        self.provider.keys.append(self.headers.get("x-postmark-server-token"))
        answers = self.provider.answers
        (answers.pop(0) if len(answers) > 1 else answers[0])(self)

    def answer(self, status: int, body: Any) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None: ...


class Provider:
    """Responds to each call with the next answer; the last one repeats."""

    def __init__(self, *answers: Answer) -> None:
        self.answers: list[Answer] = list(answers) or [accept]
        self.asked: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        handler = type("Handler", (Call,), {"provider": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def accept(call: Call) -> None:
    call.answer(200, {"ErrorCode": 0, "Message": "OK", "MessageID": "b7bc2f4a", "To": call.asked["To"]})


def refuse(status: int, body: Any) -> Answer:
    return lambda call: call.answer(status, body)


def hang_up(call: Call) -> None:
    """Close the connection without a response."""
    call.close_connection = True
    call.connection.close()


def sleep(seconds: float) -> Answer:
    def answer(call: Call) -> None:
        time.sleep(seconds)
        call.close_connection = True

    return answer
