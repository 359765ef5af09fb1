"""Guarded HTTP against the tables in `targets`: as literals, as DNS answers, after DNS rebinding, and as redirects.

A refused target must not be connected to: `dialled` lists every address of a connection attempt.
"""

import asyncio
import socket
from collections.abc import Iterator
from ipaddress import ip_address

import aiohttp
import pytest

from core.lib.network import guarded_http
from core.lib.network.address_guard import AddressRefused, Guard, HostRefused, TargetRefused, unwrap
from core.lib.network.guarded_http import GuardedSession, NoAddress
from core.lib.network.resolver import DnsAnswer, DnsError, LookupStatus, Resolver
from core.lib.network.target_urls import UrlRefused, UrlRules, parse_target
from tests.core.lib import targets
from tests.core.lib.nameserver import SERVFAIL, NameServer
from tests.rows import each
from tests.stack.stack import wait_for
from tests.webhooks.receiver import Receiver, status

RULES = UrlRules(guard=Guard())
TRIAL = UrlRules(guard=Guard(allow_private=True))
NAME = "hooks.example.com"
REFUSED = tuple(text for text in targets.REFUSED_ADDRESSES if "%" not in text)
# test_address_guard has all of them.
SOME_REFUSED = REFUSED[::13]
# Without hosts that are valid as parts of a URL: with a port, a path, a query.
MALFORMED_HOSTS = tuple(
    host
    for host in (*targets.REFUSED_HOSTS, *targets.REFUSED_LITERALS)
    if not host.endswith((":443", "/32", "/path", "?x"))
)


class FakeResolver(Resolver):
    """Answers from a table, including answers that no name server can give (a zone id)."""

    def __init__(self, *rounds: dict[str, list[str]]) -> None:
        self.rounds = list(rounds)

    async def look_up(self, name: str, kind: str) -> DnsAnswer:
        records = self.rounds[0].get(kind, [])
        if kind == "AAAA" and len(self.rounds) > 1:
            self.rounds.pop(0)
        return DnsAnswer(LookupStatus.FOUND, tuple(records)) if records else DnsAnswer(LookupStatus.NO_DATA)


def record_type(text: str) -> str:
    return "A" if ip_address(text).version == 4 else "AAAA"


@pytest.fixture
def dialled(monkeypatch) -> Iterator[list[str]]:
    """The addresses of all connection attempts; no packet is sent."""
    addresses: list[str] = []

    async def dial(addr_infos, **_):
        addresses.extend(address[4][0] for address in addr_infos)
        raise ConnectionRefusedError

    monkeypatch.setattr("aiohappyeyeballs.start_connection", dial)
    return addresses


def get(url: str, rules: UrlRules = RULES, resolver: Resolver | None = None, times: int = 1) -> list[int]:
    """Check and call a URL as a webhook attempt does; return the status codes."""

    async def run() -> list[int]:
        session = GuardedSession(
            rules, resolver=resolver or FakeResolver({}), timeout=aiohttp.ClientTimeout(total=2), headers={}
        )
        try:
            return [await call(session) for _ in range(times)]
        finally:
            await session.close()

    async def call(session: GuardedSession) -> int:
        checked = await session.check(url)
        async with session.client.post(checked, data=b"{}", allow_redirects=False) as response:
            return response.status

    return asyncio.run(run())


def literal(text: str) -> str:
    return f"[{text}]" if ip_address(text).version == 6 else text


@each("text", REFUSED)
def test_a_refused_address_is_not_dialled_as_a_literal(dialled, text):
    with pytest.raises(TargetRefused):
        get(f"https://{literal(text)}/")
    assert dialled == []


@each("text", SOME_REFUSED)
def test_a_refused_address_is_not_dialled_as_a_dns_answer_alone_or_among_public_ones(dialled, text):
    public = {"A": ["8.8.8.8"], "AAAA": ["2001:4860:4860::8888"]}
    kind = record_type(text)
    for answers in ({kind: [text]}, {kind: [text, text]}, {**public, kind: [*public[kind], text]}):
        with pytest.raises(AddressRefused) as refused:
            get(f"https://{NAME}/", resolver=FakeResolver(answers))
        assert str(refused.value) == "address not allowed"
    assert dialled == []


@each("text", SOME_REFUSED)
def test_a_name_rebound_after_the_check_is_dialled_at_its_checked_address(dialled, text):
    """The resolver is queried once: a different second answer has no effect."""
    dialled.clear()
    with pytest.raises(aiohttp.ClientConnectorError):
        get(f"https://{NAME}/", resolver=FakeResolver({"A": ["8.8.8.8"]}, {record_type(text): [text]}))
    assert dialled == ["8.8.8.8"]


@each("text", SOME_REFUSED)
def test_a_name_rebound_between_two_attempts_is_refused(dialled, monkeypatch, text):
    monkeypatch.setattr(guarded_http, "CACHE_SECONDS", 0)

    async def run() -> None:
        session = GuardedSession(
            RULES,
            resolver=FakeResolver({"A": ["8.8.8.8"]}, {record_type(text): [text]}),
            timeout=aiohttp.ClientTimeout(total=2),
            headers={},
        )
        try:
            assert (await session.check(f"https://{NAME}/")).host == NAME
            with pytest.raises(AddressRefused):
                await session.check(f"https://{NAME}/")
        finally:
            await session.close()

    asyncio.run(run())
    assert dialled == []


@each("host", MALFORMED_HOSTS)
def test_a_malformed_host_is_refused(dialled, host):
    with pytest.raises(TargetRefused):
        get(f"https://{host}/")
    assert dialled == []


@each("text", targets.ALLOWED_ADDRESSES)
def test_only_an_allowed_address_is_dialled(dialled, text):
    dialled.clear()
    for url, resolver in (
        (f"https://{literal(text)}/", None),
        (f"https://{NAME}/", FakeResolver({record_type(text): [text]})),
    ):
        with pytest.raises(aiohttp.ClientConnectorError):
            get(url, resolver=resolver)
    assert dialled == [str(unwrap(ip_address(text)))] * 2


@each("host", ["127.0.0.1", "127.0.0.2", "localhost", "::1"])
def test_on_a_trial_a_private_server_is_reached(host):
    with Receiver(host="127.0.0.1" if host == "localhost" else host) as receiver:
        target = f"http://{f'[{host}]' if ':' in host else host}:{receiver.port}/"
        assert get(target, TRIAL) == [200]
        assert len(receiver.received) == 1


def test_a_name_is_reached_over_real_dns():
    with (
        Receiver() as receiver,
        NameServer({NAME: {"CNAME": ["www.example.net."]}, "www.example.net": {"A": ["127.0.0.1"]}}) as server,
    ):
        assert get(f"http://{NAME}:{receiver.port}/", TRIAL, Resolver([server.address])) == [200]
        assert receiver.received[0].header("host") == f"{NAME}:{receiver.port}"


def test_one_of_two_queries_may_fail():
    with Receiver() as receiver, NameServer({NAME: {"A": ["127.0.0.1"], "AAAA": SERVFAIL}}) as server:
        assert get(f"http://{NAME}:{receiver.port}/", TRIAL, Resolver([server.address])) == [200]


def test_two_failed_queries_are_a_dns_error_not_a_missing_address():
    with NameServer({NAME: SERVFAIL}) as server, pytest.raises(DnsError):
        get(f"http://{NAME}/", TRIAL, Resolver([server.address], lifetime_seconds=1))
    with NameServer() as server, pytest.raises(NoAddress):
        get(f"http://{NAME}/", TRIAL, Resolver([server.address]))


@each("text", targets.REFUSED_ADDRESSES[::50])
def test_a_redirect_is_returned_and_not_followed(text):
    with Receiver() as receiver:
        receiver.answer = status(302, f"Location: http://{literal(text.partition('%')[0])}/latest/meta-data/")
        assert get(receiver.url(), TRIAL) == [302]
        assert receiver.connections == 1


def test_the_environment_names_no_proxy(monkeypatch):
    with Receiver() as receiver, Receiver() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url(""))
        assert get(receiver.url(), TRIAL) == [200]
        assert (receiver.connections, proxy.connections) == (1, 0)


def test_a_connection_to_a_refused_peer_is_never_written_to():
    """The peer is checked before the request is written, in case the kernel or a library connects elsewhere."""

    async def run(url: str) -> None:
        session = GuardedSession(TRIAL, resolver=FakeResolver({}), timeout=aiohttp.ClientTimeout(total=2), headers={})
        session.client.connector._guard = Guard()
        try:
            with pytest.raises(AddressRefused):
                await session.client.post(await session.check(url))
        finally:
            await session.close()

    with Receiver() as receiver:
        asyncio.run(run(receiver.url()))
        wait_for(lambda: receiver.connections, seconds=2, what="the connection")
        assert receiver.received == []


def test_dns_answers_are_cached_briefly(monkeypatch):
    with Receiver() as receiver, NameServer({NAME: {"A": ["127.0.0.1"]}}) as server:
        resolver = Resolver([server.address])
        assert get(f"http://{NAME}:{receiver.port}/", TRIAL, resolver, times=5) == [200] * 5
        assert server.count(NAME, "A") == 1
        monkeypatch.setattr(guarded_http, "CACHE_SECONDS", 0)
        get(f"http://{NAME}:{receiver.port}/", TRIAL, resolver, times=2)
        assert server.count(NAME, "A") >= 3


@each(("url", "normalized"), [
    ("https://example.com", "https://example.com/"),
    ("HTTPS://EXAMPLE.com:443/Hook?a=b&c=%20", "https://example.com/Hook?a=b&c=%20"),
    ("https://example.com?x=1", "https://example.com/?x=1"),
    ("https://bücher.example/", "https://xn--bcher-kva.example/"),
    ("https://example.com./a/../b", "https://example.com/a/../b"),
    ("https://8.8.8.8/", "https://8.8.8.8/"),
    ("https://[2606:4700::1111]/", "https://[2606:4700::1111]/"),
    ("https://example.com/" + "a" * 2028, "https://example.com/" + "a" * 2028),
])  # fmt: skip
def test_a_url_is_normalized(url, normalized):
    assert str(parse_target(url, rules=RULES).url) == normalized


@each("url", [
    "", "example.com", "//example.com/", "https:example.com", "https:/example.com", "https://", "https:///path",
    "http://example.com/", "ftp://example.com/", "file:///etc/passwd", "gopher://127.0.0.1:6379/_FLUSHALL",
    "javascript://example.com/%0aalert(1)", "https://user@example.com/", "https://user:secret@example.com/",
    "https://example.com@127.0.0.1/", "https://example.com/#fragment", "https://example.com#@127.0.0.1/",
    "https://example.com\\@127.0.0.1/", "https://127.0.0.1\\.example.com/", "https://example.com/a b",
    "https://example.com/ü", "https://example.com/\r\nHost: 127.0.0.1", "https://example.com\t/",
    " https://example.com/", "https://example.com/\n", "https://example.com:0/", "https://example.com:22/",
    "https://example.com:80/", "https://example.com:8443/", "https://example.com:65536/", "https://example.com:443443/",
    "https://example.com:-1/", "https://example.com:+443/", "https://example.com:\uff14\uff14\uff13/",
    "https://example.com:/", "https://[::1/", "https://[::1]x/", "https://[example.com]/",
    "https://example.com,127.0.0.1/", "https://example.com/" + "a" * 2029,
])  # fmt: skip
def test_a_url_that_is_not_plain_https_is_refused(url):
    with pytest.raises(TargetRefused):
        parse_target(url, rules=RULES)


@each("port", [443, 8443])
def test_the_ports_are_a_setting(port):
    assert (
        parse_target(f"https://example.com:{port}/", rules=UrlRules(guard=Guard(), ports=(443, 8443))).url.port == port
    )


def test_on_a_trial_http_and_any_port_are_allowed():
    assert str(parse_target("http://localhost:9000/x", rules=TRIAL).url) == "http://localhost:9000/x"
    with pytest.raises(UrlRefused):
        parse_target("http://localhost:0/", rules=TRIAL)
    with pytest.raises(HostRefused):
        parse_target("http://metadata.google.internal/", rules=TRIAL)


def test_the_resolver_returns_numeric_addresses_only():
    async def run():
        resolver = guarded_http.CheckedResolver(
            FakeResolver({"A": ["8.8.8.8"], "AAAA": ["2606:4700::1111"]}), guard=Guard()
        )
        return await resolver.resolve(NAME, 443)

    results = asyncio.run(run())
    assert [(result["host"], result["family"]) for result in results] == [
        ("8.8.8.8", socket.AF_INET),
        ("2606:4700::1111", socket.AF_INET6),
    ]
