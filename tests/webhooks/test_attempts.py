"""Delivery attempts against misbehaving endpoints: they end in time, read little and report the error."""

import gzip
import ssl
from collections.abc import Iterator

import pytest
import trustme

from core.lib.network.address_guard import Guard
from core.lib.network.resolver import Resolver
from core.lib.network.target_urls import UrlRules
from tests.core.lib.nameserver import SERVFAIL, SILENCE, NameServer
from tests.webhooks.conftest import NO_DNS, submit
from tests.webhooks.receiver import Receiver, drip, raw, reset, silence, status
from webhooks.sending import post
from webhooks.sending.post import MAX_KEPT_BYTES, MAX_READ_BYTES, PostAttempt, Poster

TRIAL = UrlRules(guard=Guard(allow_private=True))
HEADERS = {"webhook-id": "evt_1"}


@pytest.fixture
def short_timeouts(monkeypatch):
    monkeypatch.setattr(post, "ATTEMPT_SECONDS", 0.6)
    monkeypatch.setattr(post, "CONNECT_SECONDS", 0.3)


@pytest.fixture
def poster() -> Iterator[Poster]:
    poster = Poster(TRIAL, resolver=NO_DNS)
    yield poster
    submit(poster.close()).result(5)


def attempt(poster: Poster, url: str, body: bytes = b"{}") -> PostAttempt:
    return submit(poster.post(url, body=body, headers=HEADERS)).result(20)


@pytest.mark.parametrize("code", [200, 201, 202, 204, 299])
def test_2xx_is_a_success(poster, receiver, code):
    receiver.answer = status(code, body=b"" if code == 204 else b"taken")
    result = attempt(poster, receiver.url())
    assert (result.status_code, result.error, result.answer) == (code, "", "" if code == 204 else "taken")


@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
def test_a_redirect_is_a_failure_and_not_followed(poster, receiver, code):
    receiver.answer = status(code, f"Location: {receiver.url('/elsewhere')}")
    result = attempt(poster, receiver.url())
    assert (result.status_code, result.error) == (code, "redirect")
    assert [request.path for request in receiver.received] == ["/hook"]


@pytest.mark.parametrize("code", [400, 401, 404, 410, 429, 500, 503])
def test_another_status_is_a_failure(poster, receiver, code):
    receiver.answer = status(code)
    assert (attempt(poster, receiver.url()).status_code, attempt(poster, receiver.url()).error) == (code, "status")


@pytest.mark.usefixtures("short_timeouts")
@pytest.mark.parametrize(
    "answer",
    [
        silence,
        drip(b"HTTP/1.1 200 OK\r\n", every_seconds=0.05, tail=b"a"),
        drip(b"HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n", every_seconds=0.05),
        drip(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", every_seconds=0.05, tail=b"1\r\nx\r\n"),
        drip(b"", every_seconds=0.01, tail=b"HTTP/1.1 100 Continue\r\n\r\n"),
        drip(b"", every_seconds=0.01, tail=b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"),
    ],
    ids=["hangs", "drips headers", "drips a body", "drips chunks", "endless 100", "endless 103"],
)
def test_an_endless_answer_times_out(poster, receiver, answer):
    receiver.answer = answer
    result = attempt(poster, receiver.url())
    assert (result.status_code, result.error, result.answer) == (None, "timed_out", None)
    assert 0.5 < result.seconds < 1.5


@pytest.mark.parametrize(
    "head", [b"Content-Length: 104857600\r\n\r\n", b"\r\n", b"Transfer-Encoding: chunked\r\n\r\n100000\r\n"]
)
def test_64_kib_of_a_huge_answer_are_read_and_4_kib_kept(poster, receiver, head):
    receiver.answer = drip(b"HTTP/1.1 200 OK\r\n" + head, every_seconds=0, tail=b"x" * 16_384)
    result = attempt(poster, receiver.url())
    assert (result.status_code, result.error) == (200, "")
    assert result.answer == "x" * MAX_KEPT_BYTES


def test_a_compressed_answer_is_never_decompressed(poster, receiver):
    bomb = gzip.compress(b"\0" * 50_000_000)
    receiver.answer = status(200, "Content-Encoding: gzip", body=bomb[: MAX_READ_BYTES // 2])
    result = attempt(poster, receiver.url())
    assert (result.status_code, result.error) == (200, "")
    assert result.answer.startswith("\\x1f")
    assert receiver.received[0].header("accept-encoding") == "identity"


def test_the_kept_answer_is_safe_to_store_and_to_show(poster, receiver):
    receiver.answer = status(500, body=b"a\x00b\x1b[31m\xff\xc3\xa9\nc\td")
    assert attempt(poster, receiver.url()).answer == "a\\x00b\\x1b[31m\ufffdé\nc\td"


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (reset, "connection_failed"),
        (raw(b""), "connection_failed"),
        (raw(b"SSH-2.0-OpenSSH_9.2\r\n"), "invalid_answer"),
        (raw(b"HTTP/1.1 abc Nonsense\r\n\r\n"), "invalid_answer"),
        (raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort"), "invalid_answer"),
        (raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n"), "invalid_answer"),
        (raw(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 1_000_000 + b"\r\n\r\n"), "invalid_answer"),
        (raw(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 50_000 + b"\r\n"), "invalid_answer"),
        (raw(b"\x16\x03\x01\x02\x00"), "invalid_answer"),
    ],
    ids=["RST", "closed", "SSH", "no status", "cut short", "bad chunk", "a header of 1 MB", "50,000 headers", "TLS"],
)
def test_a_broken_answer_is_a_failure(poster, receiver, answer, error):
    receiver.answer = answer
    result = attempt(poster, receiver.url())
    assert (result.status_code, result.error) == (None, error)


def test_a_closed_port_is_a_connection_failure(poster):
    with Receiver() as stopped:
        url = stopped.url()
    assert attempt(poster, url).error == "connection_failed"


@pytest.mark.usefixtures("short_timeouts")
def test_a_host_that_accepts_no_connection_costs_only_the_connect_timeout(poster):
    # The backlog is full, so the kernel drops further connections.
    import socket

    with socket.socket() as server, socket.socket() as first, socket.socket() as second:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        for client in (first, second):
            client.setblocking(False)
            client.connect_ex(server.getsockname())
        result = attempt(poster, f"http://127.0.0.1:{server.getsockname()[1]}/")
    assert result.error == "timed_out"
    assert 0.25 < result.seconds < 0.55


def test_connections_are_kept(poster, receiver):
    for _ in range(5):
        assert attempt(poster, receiver.url()).error == ""
    assert (len(receiver.received), receiver.connections) == (5, 1)


def test_neither_proxy_settings_nor_cookies_are_used(poster, receiver, monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    receiver.answer = status(200, "Set-Cookie: a=b; Path=/")
    attempt(poster, receiver.url())
    attempt(poster, receiver.url())
    names = {name.lower() for name in receiver.received[1].headers}
    assert names == {
        "host",
        "content-type",
        "user-agent",
        "accept",
        "accept-encoding",
        "webhook-id",
        "content-length",
    }


AUTHORITY = trustme.CA()


class TestTls:
    @pytest.fixture
    def trusting(self) -> Iterator[Poster]:
        context = ssl.create_default_context()
        AUTHORITY.configure_trust(context)
        with NameServer({"hooks.example": {"A": ["127.0.0.1"]}, "other.example": {"A": ["127.0.0.1"]}}) as names:
            poster = Poster(TRIAL, resolver=Resolver([names.address]), tls=context)
            yield poster
            submit(poster.close()).result(5)

    @pytest.fixture
    def secure(self) -> Iterator[Receiver]:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        AUTHORITY.issue_cert("hooks.example").configure_cert(context)
        self.server_names: list[str | None] = []
        context.sni_callback = lambda _, name, __: self.server_names.append(name)
        with Receiver(tls=context) as receiver:
            yield receiver

    def test_a_valid_certificate_is_accepted_and_the_name_sent(self, trusting, secure):
        assert attempt(trusting, secure.url(host="hooks.example")).error == ""
        assert self.server_names == ["hooks.example"]
        assert secure.received[0].header("host") == f"hooks.example:{secure.port}"

    def test_a_certificate_for_another_name_is_rejected(self, trusting, secure):
        assert attempt(trusting, secure.url(host="other.example")).error == "tls_failed"
        assert secure.received == []

    def test_an_untrusted_certificate_is_rejected(self, poster, secure):
        assert attempt(poster, secure.url()).error == "tls_failed"

    @pytest.mark.usefixtures("short_timeouts")
    def test_a_port_without_tls_is_a_failure(self, poster, receiver):
        result = attempt(poster, receiver.url().replace("http:", "https:"))
        assert result.error in {"tls_failed", "connection_failed", "timed_out"}


@pytest.mark.parametrize(
    ("zones", "error"),
    [
        ({}, "dns_failed"),
        ({"hooks.example": {"TXT": ['"nothing"']}}, "dns_failed"),
        ({"hooks.example": SERVFAIL}, "dns_failed"),
        ({"hooks.example": {"A": ["169.254.169.254"]}}, "forbidden_target"),
        ({"hooks.example": {"A": [f"127.0.0.{number}" for number in range(1, 18)]}}, "forbidden_target"),
    ],
    ids=["no name", "no address", "servfail", "metadata", "17 addresses"],
)
def test_hosts_without_addresses_or_with_forbidden_ones_fail(zones, error):
    with NameServer(zones) as names:
        poster = Poster(TRIAL, resolver=Resolver([names.address], lifetime_seconds=0.4))
        assert attempt(poster, "http://hooks.example:9/").error == error
        submit(poster.close()).result(5)


def test_a_silent_name_server_fails_within_the_attempt():
    with NameServer({"hooks.example": SILENCE}) as names:
        poster = Poster(TRIAL, resolver=Resolver([names.address], lifetime_seconds=0.4))
        assert attempt(poster, "http://hooks.example:9/").error == "dns_failed"
        submit(poster.close()).result(5)
