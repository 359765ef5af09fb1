"""What one workspace or client does in web takes nothing from the others (docs/security.md, Shares)."""

import http.client
import itertools
import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from threading import Event, Thread

import pytest

from config.web.worker import ARRIVAL_SECONDS, MAX_ARRIVING, SHARE_OF_ARRIVING
from core.api.transfers import MAX_FILES_PER_WORKSPACE
from tests.stack.stack import Stack, running_stack, wait_for

pytestmark = pytest.mark.stack
THREADS = 4
CREATE_WORKSPACE = "from tests.conftest import make_account, make_key; print(make_key(make_account('other').workspace))"

TARGET = "grace@example.org"
RECEIVE = f"""
from django.utils import timezone
from domains.models import Domain
from receiving.models import ForwardTarget
from tests.receiving.builders import make_route, receive, receive_for
from tests.receiving.hostile import MIB, SIZED
domain = Domain.objects.get(name="demo.example")
receive_for(domain)
make_route(domain.workspace, domain=domain.name)
ForwardTarget.objects.create(workspace=domain.workspace, address="{TARGET}", confirmed_at=timezone.now())
ordinary = b"From: ada@example.com\\r\\nSubject: Hi\\r\\n\\r\\n" + (b"x" * 62 + b"\\r\\n") * (MIB // 64 + MIB // 1024)
hostile = ("a field with a CR at the bound of a header", "nested comments", "forged results")
for source in (*[ordinary] * 3, *(SIZED[name](len(ordinary)) for name in hostile)):
    print(receive(source, "support@demo.example").id)
"""


@pytest.fixture(scope="module")
def stack(tmp_path_factory) -> Iterator[Stack]:
    with running_stack(tmp_path_factory.mktemp("shares"), WEB_CONCURRENCY="1") as stack:
        stack.start("web")
        yield stack


@pytest.fixture(scope="module")
def other(stack: Stack) -> Stack:
    """Another workspace of the same service."""
    key = stack.manage("shell", "--verbosity", "0", "-c", CREATE_WORKSPACE).split()[-1]
    return replace(stack, key=key)


@pytest.fixture(params=[ARRIVAL_SECONDS - 1, pytest.param(1.0, marks=pytest.mark.long)], ids=["patient", "real"])
def limit(request: pytest.FixtureRequest) -> float:
    """The limit of an answer: less than the time after which an incomplete request is ended."""
    return float(request.param)


def longest_wait(stack: Stack, *, requests: int = 5) -> float:
    """Return the seconds of the slowest of some requests, one after another."""
    seconds = []
    for _ in range(requests):
        reply = stack.call("GET", "/me")
        assert reply.status == 200
        started = time.monotonic()
        assert stack.is_healthy()
        seconds += [reply.seconds, time.monotonic() - started]
    return max(seconds)


def read_response(client: socket.socket) -> http.client.HTTPResponse:
    """Read the head of a response. Its socket is closed when its body is read, too."""
    response = http.client.HTTPResponse(client)
    response.begin()
    return response


def test_readers_that_stop_hold_no_thread(stack, other, limit):
    text = "x" * 900_000
    ids = [stack.send(to=f"r{number}@example.com", html=f"<p>{text}</p>").body["id"] for number in range(2)]
    with ExitStack() as opened:
        for number in range(4 * THREADS):
            client = opened.enter_context(stack.connect(receive_bytes=4096))
            client.sendall(stack.request_head(f"GET /v1/emails/{ids[number % 2]} HTTP/1.1"))
        time.sleep(0.5)
        assert longest_wait(other) < limit


def test_readers_of_exports_that_stop_hold_no_thread(stack, other, limit):
    send_many(stack, count=1500)
    with ExitStack() as opened:
        clients = [opened.enter_context(stack.connect(receive_bytes=4096)) for _ in range(MAX_FILES_PER_WORKSPACE + 2)]
        for client in clients:
            client.sendall(stack.request_head("GET /v1/emails/export HTTP/1.1"))
            time.sleep(0.1)
        assert longest_wait(other) < limit
        assert [client.recv(12)[-3:] for client in clients] == [b"200"] * MAX_FILES_PER_WORKSPACE + [b"429"] * 2


def send_many(stack: Stack, *, count: int) -> None:
    """Send emails of 3 kB each in an export."""
    stack.call("POST", "/templates", {"name": "t", "alias": "t", "subject": "s", "htmlContent": "<p>Hi</p>"})
    for start in range(0, count, 500):
        recipients = [{"to": f"r{start + number}@example.com"} for number in range(500)]
        metadata = {f"name{number}": "x" * 400 for number in range(7)}
        batch = {"from": "hello@demo.example", "templateId": "t", "recipients": recipients, "metadata": metadata}
        assert stack.call("POST", "/emails/batch", batch).status == 202


@pytest.mark.parametrize("version", ["1.1", "1.0"])
def test_a_slow_reader_gets_its_whole_export(other, version):
    with other.connect(receive_bytes=4096) as client:
        client.sendall(other.request_head(f"GET /v1/emails/export?tag=none HTTP/{version}"))
        response = read_response(client)
        assert response.getheader("Transfer-Encoding") == ("chunked" if version == "1.1" else None)
        lines = response.read().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith(b'"id","to"')


def test_a_slow_reader_gets_its_whole_answer(stack):
    email = stack.send(html=f"<p>{'x' * 900_000}</p>").body["id"]
    with stack.connect(receive_bytes=4096) as client:
        client.sendall(stack.request_head(f"GET /v1/emails/{email} HTTP/1.1"))
        response = read_response(client)
        body = b""
        while piece := response.read(100_000):
            body += piece
            time.sleep(0.05)
    assert json.loads(body)["htmlContent"] == f"<p>{'x' * 900_000}</p>"


def test_clients_that_do_not_close_their_connection_delay_nobody(stack, other, limit):
    with ExitStack() as opened:
        for _ in range(4):
            client = opened.enter_context(stack.connect())
            client.sendall(stack.request_head("GET /v1/me HTTP/1.1"))
            assert client.recv(65536).startswith(b"HTTP/1.1 200 OK")
        assert longest_wait(other, requests=3) < limit


# Before the request, in its head, the body and its chunks.
STOPPED = [
    b"",
    b"POST /v1/emails/send HTTP/1.1\r\nHost: 127.0.0.1\r\n",
    b"POST /v1/emails/send HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\n{",
    b"POST /v1/emails/send HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{",
]


def test_requests_that_stop_hold_no_thread(stack, other, limit):
    with ExitStack() as opened:
        for start in STOPPED * 4 * THREADS:
            opened.enter_context(stack.connect()).sendall(start)
        time.sleep(0.2)
        assert longest_wait(other) < limit


def test_one_address_has_a_share_of_the_incomplete_requests(stack):
    with ExitStack() as opened:
        clients = [opened.enter_context(stack.connect()) for _ in range(MAX_ARRIVING // SHARE_OF_ARRIVING + 5)]
        for client in clients:
            client.sendall(b"GET / HTTP/1.1\r\n")
        ended = wait_for(lambda: count if (count := sum(map(is_ended, clients))) >= 5 else 0, seconds=60, what="ends")
    assert ended == 5


def is_ended(client: socket.socket) -> bool:
    client.setblocking(False)
    try:
        return client.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


def test_a_request_that_arrives_too_slowly_or_is_too_large_is_refused(stack):
    head = stack.request_head("POST /v1/emails/send HTTP/1.1", "Content-Length: 99000000")
    rows = [
        (b"GET / HTTP/1.1\r\n", 408, "request_timeout"),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 200_000, 431, "headers_too_large"),
        # Before the rest is sent.
        (head + b"x" * 1_000_000, 413, "payload_too_large"),
    ]
    for sent, *expected in rows:
        with stack.connect() as client:
            client.settimeout(60)
            client.sendall(sent)
            response = read_response(client)
            assert [response.status, json.loads(response.read())["code"]] == expected


def test_a_client_that_expects_a_reply_before_its_body_gets_one(stack):
    body = json.dumps({"from": "hello@demo.example", "to": "ada@example.com", "subject": "Hi", "text": "Hi"}).encode()
    fields = (f"Content-Length: {len(body)}", "Expect: 100-continue")
    with stack.connect() as client:
        client.settimeout(5)
        client.sendall(stack.request_head("POST /v1/emails/send HTTP/1.1", *fields))
        assert client.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n"
        client.sendall(body)
        response = read_response(client)
        response.read()
        assert response.status == 202


def test_heavy_requests_of_one_workspace_leave_threads_to_others(stack, other, limit):
    with busy(stack, callers=12):
        time.sleep(0.5)
        assert longest_wait(other, requests=10) < limit


def test_too_many_requests_of_one_workspace_are_429(stack, other, limit):
    with ExitStack() as opened, busy(stack, callers=THREADS):
        clients = [opened.enter_context(stack.connect()) for _ in range(300)]
        for client in clients:
            client.sendall(stack.request_head("GET /v1/me HTTP/1.1"))
        assert longest_wait(other, requests=5) < limit
        responses = []
        for client in clients:
            response = read_response(client)
            response.read()
            responses.append((response.status, response.getheader("Retry-After")))
    assert (429, "2") in responses
    assert {status for status, _ in responses} <= {200, 429}


@pytest.mark.long
def test_a_hostile_received_message_delays_others_no_more_than_an_ordinary_one(stack, other):
    """Six clients that download and forward without a pause use the whole machine, with any message."""
    ids = stack.manage("shell", "--verbosity", "0", "-c", RECEIVE).split()

    def beside(ids: list[str]) -> float:
        chosen = itertools.cycle(ids)

        def forward() -> int:
            return stack.call("POST", f"/inbound/emails/{next(chosen)}/forward", {"to": TARGET}).status

        def download() -> int:
            with stack.connect() as client:
                client.sendall(stack.request_head(f"GET /v1/inbound/emails/{next(chosen)}/raw HTTP/1.1"))
                response = read_response(client)
                response.read()
            return response.status

        # Beside others, some are 429: they are more than the share of a workspace.
        assert [download() for _ in ids] == [200] * len(ids)
        assert [forward() for _ in ids] == [202] * len(ids)
        with repeated([download, download, download, forward, forward, forward]):
            return p99(other)

    ordinary, hostile = beside(ids[:3]), beside(ids[3:])
    # The former expression needed 30 s for one of them.
    assert hostile <= 3 * ordinary, (ordinary, hostile)
    assert hostile < 1


def p99(stack: Stack, *, requests: int = 200) -> float:
    """Return the 99th percentile of the seconds of requests, one after another."""
    replies = [stack.call("GET", "/me") for _ in range(requests)]
    assert {reply.status for reply in replies} == {200}
    return sorted(reply.seconds for reply in replies)[requests * 99 // 100]


@contextmanager
def busy(stack: Stack, *, callers: int) -> Iterator[None]:
    """Send batches with a template at the limit of its steps."""
    loops = "{{#each a}}{{#each b}}{{x}}{{/each}}{{/each}}"
    template = {"name": "heavy", "alias": "heavy", "subject": "s", "htmlContent": loops}
    stack.call("POST", "/templates", template)
    data = {"a": [1] * 30, "b": [1] * 30}
    recipients = [{"to": f"r{number}@example.com", "templateData": data} for number in range(50)]
    batch = {"from": "hello@demo.example", "templateId": "heavy", "recipients": recipients}
    with repeated([lambda: stack.call("POST", "/emails/batch", batch)] * callers):
        yield


@contextmanager
def repeated(calls: list[Callable[[], object]]) -> Iterator[None]:
    """Repeat each call in a thread."""
    is_over = Event()

    def repeat(call: Callable[[], object]) -> None:
        while not is_over.is_set():
            call()

    threads = [Thread(target=repeat, args=[call]) for call in calls]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        is_over.set()
        for thread in threads:
            thread.join()
