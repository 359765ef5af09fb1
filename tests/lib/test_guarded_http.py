"""The guarded HTTP session against the tables in `targets`: as literals, as DNS answers, rebound, and redirected to.

A refused target must not be dialled: `dialled` has every address that a socket was asked for.
"""

import asyncio
import socket
from collections.abc import Iterator
from ipaddress import ip_address

import aiohttp
import pytest

from lib import guarded_http
from lib.address_guard import AddressRefused, Guard, HostRefused, TargetRefused, unwrap
from lib.guarded_http import GuardedSession, NoAddress, Rules, UrlRefused, check_now, read_target
from lib.resolver import Answer, DnsTrouble, Resolver, Status
from tests.lib import targets
from tests.lib.nameserver import SERVFAIL, NameServer
from tests.stack.stack import wait_for
from tests.webhooks.receiver import Receiver, status

RULES = Rules(guard=Guard())
TRIAL = Rules(guard=Guard(allow_private=True))
NAME = "hooks.example.com"
REFUSED = tuple(text for text in targets.REFUSED_ADDRESSES if "%" not in text)
# Without what is odd for a host, but has a meaning of its own in a URL: a port, a path, a query.
SPELLED = tuple(
    host
    for host in (*targets.REFUSED_HOSTS, *targets.REFUSED_LITERALS)
    if not host.endswith((":443", "/32", "/path", "?x"))
)


class Names(Resolver):
    """Answers from a table; what a name server could say, and what none could (a zone id)."""

    def __init__(self, *rounds: dict[str, list[str]]) -> None:
        self.rounds = list(rounds)

    async def look_up(self, name: str, kind: str) -> Answer:
        found = self.rounds[0].get(kind, [])
        if kind == "AAAA" and len(self.rounds) > 1:
            self.rounds.pop(0)
        return Answer(Status.FOUND, tuple(found)) if found else Answer(Status.NO_DATA)


def kind_of(text: str) -> str:
    return "A" if ip_address(text).version == 4 else "AAAA"


@pytest.fixture
def dialled(monkeypatch) -> Iterator[list[str]]:
    """Every address that a connection is begun to; the packet never leaves."""
    found: list[str] = []

    async def dial(addr_infos, **_):
        found.extend(address[4][0] for address in addr_infos)
        raise ConnectionRefusedError

    monkeypatch.setattr("aiohappyeyeballs.start_connection", dial)
    return found


def get(url: str, rules: Rules = RULES, resolver: Resolver | None = None, times: int = 1) -> list[int]:
    """Check and call a URL, as an attempt does; return the statuses."""

    async def run() -> list[int]:
        session = GuardedSession(
            rules, resolver=resolver or Names({}), timeout=aiohttp.ClientTimeout(total=2), headers={}
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


@pytest.mark.parametrize("text", REFUSED)
def test_a_refused_address_is_not_dialled_as_a_literal(dialled, text):
    with pytest.raises(TargetRefused):
        get(f"https://{literal(text)}/")
    assert dialled == []


@pytest.mark.parametrize("text", REFUSED)
def test_a_refused_address_is_not_dialled_as_a_dns_answer(dialled, text):
    for answers in ([text], [text, text]):
        with pytest.raises(AddressRefused) as refused:
            get(f"https://{NAME}/", resolver=Names({kind_of(text): answers}))
        assert str(refused.value) == "address not allowed"
    assert dialled == []


@pytest.mark.parametrize("text", REFUSED)
def test_one_refused_answer_beside_public_ones_spoils_all(dialled, text):
    answers = {"A": ["8.8.8.8"], "AAAA": ["2001:4860:4860::8888"]}
    answers[kind_of(text)] = [*answers[kind_of(text)], text]
    with pytest.raises(AddressRefused):
        get(f"https://{NAME}/", resolver=Names(answers))
    assert dialled == []


@pytest.mark.parametrize("text", REFUSED)
def test_a_name_that_is_rebound_after_the_check_is_dialled_where_it_was_checked(dialled, text):
    """The resolver is asked once: what the next answer would be does not matter."""
    with pytest.raises(aiohttp.ClientConnectorError):
        get(f"https://{NAME}/", resolver=Names({"A": ["8.8.8.8"]}, {kind_of(text): [text]}))
    assert dialled == ["8.8.8.8"]


@pytest.mark.parametrize("text", REFUSED)
def test_a_name_that_is_rebound_between_two_attempts_is_refused(dialled, monkeypatch, text):
    monkeypatch.setattr(guarded_http, "KEEP_SECONDS", 0)

    async def run() -> None:
        session = GuardedSession(
            RULES,
            resolver=Names({"A": ["8.8.8.8"]}, {kind_of(text): [text]}),
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


@pytest.mark.parametrize("spelled", SPELLED, ids=lambda host: ascii(host)[:40])
def test_an_odd_spelling_is_refused(dialled, spelled):
    with pytest.raises(TargetRefused):
        get(f"https://{spelled}/")
    assert dialled == []


def test_the_tables_are_as_large_as_the_threat_asks():
    assert len(set(REFUSED)) >= 120
    assert len(set(SPELLED)) >= 120


@pytest.mark.parametrize("text", targets.ALLOWED_ADDRESSES)
def test_an_allowed_address_is_dialled_and_no_other(dialled, text):
    address = str(unwrap(ip_address(text)))
    for url, resolver in (
        (f"https://{literal(text)}/", None),
        (f"https://{NAME}/", Names({kind_of(text): [text]})),
    ):
        with pytest.raises(aiohttp.ClientConnectorError):
            get(url, resolver=resolver)
    assert dialled == [address, address]


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.2", "localhost", "::1"])
def test_on_a_trial_a_private_server_is_reached(host):
    with Receiver(host="127.0.0.1" if host == "localhost" else host) as receiver:
        target = f"http://{f'[{host}]' if ':' in host else host}:{receiver.port}/"
        assert get(target, TRIAL) == [200]
        assert len(receiver.received) == 1


def test_a_name_is_reached_over_real_dns():
    with (
        Receiver() as receiver,
        NameServer({NAME: {"CNAME": ["www.example.net."]}, "www.example.net": {"A": ["127.0.0.1"]}}) as names,
    ):
        assert get(f"http://{NAME}:{receiver.port}/", TRIAL, Resolver([names.address])) == [200]
        assert receiver.received[0].header("host") == f"{NAME}:{receiver.port}"


def test_one_of_two_questions_may_fail():
    with Receiver() as receiver, NameServer({NAME: {"A": ["127.0.0.1"], "AAAA": SERVFAIL}}) as names:
        assert get(f"http://{NAME}:{receiver.port}/", TRIAL, Resolver([names.address])) == [200]


def test_when_both_fail_it_is_trouble_and_no_answer():
    with NameServer({NAME: SERVFAIL}) as names, pytest.raises(DnsTrouble):
        get(f"http://{NAME}/", TRIAL, Resolver([names.address], lifetime_seconds=1))
    with NameServer() as names, pytest.raises(NoAddress):
        get(f"http://{NAME}/", TRIAL, Resolver([names.address]))


@pytest.mark.parametrize("text", targets.REFUSED_ADDRESSES[::9])
def test_a_redirect_is_an_answer_and_nothing_more(text):
    with Receiver() as receiver:
        receiver.answer = status(302, f"Location: http://{literal(text.partition('%')[0])}/latest/meta-data/")
        assert get(receiver.url(), TRIAL) == [302]
        assert receiver.connections == 1


def test_a_connection_that_ended_up_elsewhere_is_never_written_to():
    """Should the kernel or a library lead astray: the far end is looked at before the request is written."""

    async def run(url: str) -> None:
        session = GuardedSession(TRIAL, resolver=Names({}), timeout=aiohttp.ClientTimeout(total=2), headers={})
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


def test_an_answer_is_kept_for_a_moment_only(monkeypatch):
    with Receiver() as receiver, NameServer({NAME: {"A": ["127.0.0.1"]}}) as names:
        resolver = Resolver([names.address])
        assert get(f"http://{NAME}:{receiver.port}/", TRIAL, resolver, times=5) == [200] * 5
        assert names.count(NAME, "A") == 1
        monkeypatch.setattr(guarded_http, "KEEP_SECONDS", 0)
        get(f"http://{NAME}:{receiver.port}/", TRIAL, resolver, times=2)
        assert names.count(NAME, "A") >= 3


@pytest.mark.parametrize(
    ("url", "called"),
    [
        ("https://example.com", "https://example.com/"),
        ("HTTPS://EXAMPLE.com:443/Hook?a=b&c=%20", "https://example.com/Hook?a=b&c=%20"),
        ("https://example.com?x=1", "https://example.com/?x=1"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("https://example.com./a/../b", "https://example.com/a/../b"),
        ("https://8.8.8.8/", "https://8.8.8.8/"),
        ("https://[2606:4700::1111]/", "https://[2606:4700::1111]/"),
        ("https://example.com/" + "a" * 2028, "https://example.com/" + "a" * 2028),
    ],
)
def test_a_url_is_read_into_the_one_that_is_called(url, called):
    assert str(read_target(url, rules=RULES).url) == called


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.com",
        "//example.com/",
        "https:example.com",
        "https:/example.com",
        "https://",
        "https:///path",
        "http://example.com/",
        "ftp://example.com/",
        "file:///etc/passwd",
        "gopher://127.0.0.1:6379/_FLUSHALL",
        "javascript://example.com/%0aalert(1)",
        "https://user@example.com/",
        "https://user:secret@example.com/",
        "https://example.com@127.0.0.1/",
        "https://example.com/#fragment",
        "https://example.com#@127.0.0.1/",
        "https://example.com\\@127.0.0.1/",
        "https://127.0.0.1\\.example.com/",
        "https://example.com/a b",
        "https://example.com/ü",
        "https://example.com/\r\nHost: 127.0.0.1",
        "https://example.com\t/",
        " https://example.com/",
        "https://example.com/\n",
        "https://example.com:0/",
        "https://example.com:22/",
        "https://example.com:80/",
        "https://example.com:8443/",
        "https://example.com:65536/",
        "https://example.com:443443/",
        "https://example.com:-1/",
        "https://example.com:+443/",
        "https://example.com:\uff14\uff14\uff13/",
        "https://example.com:/",
        "https://[::1/",
        "https://[::1]x/",
        "https://[example.com]/",
        "https://example.com,127.0.0.1/",
        "https://example.com/" + "a" * 2029,
    ],
    ids=lambda url: ascii(url)[:50],
)
def test_a_url_that_is_not_plain_https_is_refused(url):
    with pytest.raises(TargetRefused):
        read_target(url, rules=RULES)


@pytest.mark.parametrize("port", [443, 8443])
def test_the_ports_are_a_setting(port):
    assert read_target(f"https://example.com:{port}/", rules=Rules(guard=Guard(), ports=(443, 8443))).url.port == port


def test_on_a_trial_http_and_any_port_are_open():
    assert str(read_target("http://localhost:9000/x", rules=TRIAL).url) == "http://localhost:9000/x"
    with pytest.raises(UrlRefused):
        read_target("http://localhost:0/", rules=TRIAL)
    with pytest.raises(HostRefused):
        read_target("http://metadata.google.internal/", rules=TRIAL)


def test_a_url_can_be_checked_once_and_for_now():
    def check(zones) -> None:
        with NameServer(zones) as names:
            resolver = Resolver([names.address], lifetime_seconds=0.5)
            asyncio.run(check_now(f"https://{NAME}/", rules=RULES, resolver=resolver))

    check({NAME: {"A": ["8.8.8.8"]}})
    check({})
    check({NAME: SERVFAIL})
    with pytest.raises(AddressRefused):
        check({NAME: {"A": ["8.8.8.8"], "AAAA": ["::1"]}})
    with pytest.raises(AddressRefused):
        check({NAME: {"CNAME": ["inside.example."]}, "inside.example": {"A": ["10.0.0.1"]}})


def test_the_resolver_hands_over_numeric_addresses_only():
    async def run():
        resolver = guarded_http.CheckedResolver(Names({"A": ["8.8.8.8"], "AAAA": ["2606:4700::1111"]}), guard=Guard())
        return await resolver.resolve(NAME, 443)

    found = asyncio.run(run())
    assert [(one["host"], one["family"]) for one in found] == [
        ("8.8.8.8", socket.AF_INET),
        ("2606:4700::1111", socket.AF_INET6),
    ]
