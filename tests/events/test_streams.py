"""Event streams of the running web processes: 200 readers hold no thread of the web server."""

import json
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from urllib.parse import urlsplit

import pytest

from tests.stack.limits import private_bytes
from tests.stack.stack import Stack, running_stack, wait_for

pytestmark = pytest.mark.stack

READERS = 200
MAX_BYTES = 100 * 1024 * 1024
LIMIT_SECONDS = 60


class StreamReader:
    """A connection that reads server-sent events; `events` has those received, `headers` the head."""

    def __init__(self, stack: Stack, *, path: str = "/v1/events/stream", key: str = "", after: str = "") -> None:
        address = urlsplit(stack.url)
        self.socket = socket.create_connection((address.hostname, address.port), timeout=LIMIT_SECONDS)
        last = f"Last-Event-ID: {after}\r\n" if after else ""
        head = (
            f"GET {path} HTTP/1.1\r\nHost: {address.netloc}\r\nAuthorization: Bearer {key or stack.key}\r\n{last}\r\n"
        )
        self.socket.sendall(head.encode())
        self.file = self.socket.makefile("rb")
        self.status = self.file.readline().decode().strip()
        self.headers = dict(line.split(": ", 1) for line in iter(self._line, ""))

    def _line(self) -> str:
        return self.file.readline().decode().strip()

    def next_event(self) -> dict:
        """Return the next event of an email, with the cursor of its `id` line as `id_line`.

        A trial verifies its domain at some time, which is an event, too.
        """
        cursor = ""
        while True:
            line = self.file.readline().decode()
            assert line, "the stream ended"
            name, _, value = line.strip().partition(": ")
            cursor = value if name == "id" else cursor
            if name == "data" and (event := json.loads(value))["type"].startswith("email."):
                return {**event, "id_line": cursor}

    def close(self) -> None:
        self.file.close()
        self.socket.close()


@pytest.fixture(scope="module")
def stack(tmp_path_factory) -> Iterator[Stack]:
    with running_stack(tmp_path_factory.mktemp("streams"), WEB_CONCURRENCY="2") as stack:
        stack.start("inbox", "worker", "web")
        yield stack


def send(stack: Stack, address: str = "ada@example.com") -> str:
    body = {"from": "hello@demo.example", "to": address, "subject": "Hi", "text": "Hi"}
    reply = stack.call("POST", "/emails/send", body)
    assert reply.status == 202, reply
    return reply.body["id"]


def test_a_stream_continues_at_its_cursor(stack: Stack):
    reader = StreamReader(stack)
    assert reader.status == "HTTP/1.1 200 OK"
    assert reader.headers["Content-Type"] == "text/event-stream"
    assert reader.headers["X-Accel-Buffering"] == "no"
    assert reader.headers["X-Request-Id"].startswith("req_")
    email_id = send(stack)
    queued = reader.next_event()
    reader.close()
    assert (queued["type"], queued["data"]["emailId"]) == ("email.queued", email_id)
    assert queued["id_line"] == queued["cursor"]
    reader = StreamReader(stack, after=queued["cursor"])
    assert [reader.next_event()["event"] for _ in range(2)] == ["sent", "delivered"]
    reader.close()


def test_two_hundred_readers_use_little_memory_and_no_thread_of_the_web_server(stack: Stack):
    for _ in range(20):
        assert stack.call("GET", "/me").status == 200
    before = private_bytes(stack, "web")
    with ExitStack() as readers:
        streams = []
        for _ in range(READERS):
            streams.append(StreamReader(stack))
            readers.callback(streams[-1].close)
        assert {stream.status for stream in streams} == {"HTTP/1.1 200 OK"}
        # The web processes have eight threads together.
        for _ in range(20):
            assert stack.call("GET", "/me").status == 200
        email_id = send(stack)
        received = [stream.next_event() for stream in streams]
        assert {event["data"]["emailId"] for event in received} == {email_id}
        used = private_bytes(stack, "web") - before
        sys.stderr.write(f"{READERS} readers: {used / 1e6:.1f} MB\n")
        assert used < MAX_BYTES


def test_a_stream_ends_when_its_key_is_revoked(stack: Stack):
    made = json.loads(
        stack.manage("create_api_key", "--workspace", workspace_id(stack), "--name", "s", "--scope", "read_only")
    )
    reader = StreamReader(stack, key=made["key"])
    stack.query("UPDATE workspaces_apikey SET revoked_at = now() WHERE name = 's' RETURNING 1")
    send(stack)
    # Events before the process reads the key again may still arrive.
    assert wait_for(lambda: not reader.file.readline(), seconds=LIMIT_SECONDS, what="the stream ends")
    reader.close()


def workspace_id(stack: Stack) -> str:
    return str(stack.call("GET", "/me").body["workspace"]["id"])


def test_without_a_key_no_stream_opens(stack: Stack):
    reader = StreamReader(stack, key="pr_wrong")
    assert reader.status == "HTTP/1.1 401 Unauthorized"
    assert reader.headers["Content-Type"] == "application/problem+json"
    reader.close()


def test_a_process_that_ends_is_replaced_and_clients_continue(stack: Stack):
    reader = StreamReader(stack)
    send(stack)
    queued = reader.next_event()
    stack.kill("web")
    deadline = time.monotonic() + LIMIT_SECONDS
    while reader.file.readline():
        assert time.monotonic() < deadline
    reader.close()
    stack.start("web")
    reader = StreamReader(stack, after=queued["cursor"])
    assert reader.next_event()["event"] == "sent"
    reader.close()
