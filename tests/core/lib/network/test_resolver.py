"""The resolver against a real name server: authoritative answers are distinguished from errors."""

import asyncio
import time
from collections.abc import Iterator

import pytest

from core.lib.network.resolver import DnsAnswer, DnsError, LookupStatus, Resolver
from tests.core.lib.nameserver import GARBAGE, REFUSED, SERVFAIL, SILENCE, TRUNCATED, NameServer
from tests.rows import each

ZONES = {
    "example.com": {
        "MX": ["20 B.Example.com.", "10 a.example.com."],
        "A": ["192.0.2.1"],
        "TXT": ['"v=spf1 " "-all"', '"other"'],
    },
    "a.example.com": {"A": ["192.0.2.7", "192.0.2.8"], "AAAA": ["2001:db8::7"]},
    "alias.example.com": {"CNAME": ["second.example.com."]},
    "second.example.com": {"CNAME": ["a.example.com."]},
    "dangling.example.com": {"CNAME": ["nowhere.example.com."]},
    "loop.example.com": {"CNAME": ["pool.example.com."]},
    "pool.example.com": {"CNAME": ["loop.example.com."]},
    "null.example": {"MX": ["0 ."]},
    "selector._domainkey.example.com": {"TXT": ['"v=DKIM1; p=' + "A" * 200 + '" "' + "B" * 200 + '"']},
    "broken.example": SERVFAIL,
    "shut.example": REFUSED,
    "silent.example": SILENCE,
    "odd.example": GARBAGE,
    "half.example": {"MX": SERVFAIL, "A": ["192.0.2.3"]},
    "large.example": {"TXT": TRUNCATED},
}


@pytest.fixture(scope="module")
def server() -> Iterator[NameServer]:
    with NameServer(ZONES) as server:
        server.over_tcp["large.example"] = {"TXT": [f'"row {number} {"x" * 200}"' for number in range(40)]}
        yield server


def look_up(server: NameServer, name: str, kind: str, *, seconds: float = 2.0) -> DnsAnswer:
    return asyncio.run(Resolver([server.address], lifetime_seconds=seconds).look_up(name, kind))


@each(
    ("name", "kind", "records"),
    [
        ("example.com", "MX", {(10, "a.example.com"), (20, "b.example.com")}),
        ("example.com", "TXT", {"v=spf1 -all", "other"}),
        ("a.example.com", "A", {"192.0.2.7", "192.0.2.8"}),
        ("a.example.com", "AAAA", {"2001:db8::7"}),
        ("null.example", "MX", {(0, "")}),
        ("EXAMPLE.COM", "A", {"192.0.2.1"}),
        ("selector._domainkey.example.com", "TXT", {"v=DKIM1; p=" + "A" * 200 + "B" * 200}),
        ("alias.example.com", "CNAME", {"second.example.com"}),
    ],
)
def test_records_are_found(server, name, kind, records):
    answer = look_up(server, name, kind)
    assert (answer.status, set(answer.records)) == (LookupStatus.FOUND, records)
    assert answer.ttl_seconds == 60


def test_a_chain_of_aliases_is_followed(server):
    answer = look_up(server, "alias.example.com", "A")
    assert (set(answer.records), answer.canonical_name) == ({"192.0.2.7", "192.0.2.8"}, "a.example.com")


def test_a_name_without_such_records_exists(server):
    assert look_up(server, "a.example.com", "MX").status is LookupStatus.NO_DATA
    assert look_up(server, "_domainkey.example.com", "TXT").status is LookupStatus.NO_DATA


@each("name", ["nowhere.example", "dangling.example.com", "x.a.example.com"])
def test_a_missing_name_is_an_answer(server, name):
    assert look_up(server, name, "MX").status is LookupStatus.NO_NAME


@each("name", ["broken.example", "shut.example", "silent.example", "odd.example", "half.example"])
def test_a_failing_server_is_a_dns_error(server, name):
    with pytest.raises(DnsError):
        look_up(server, name, "MX", seconds=0.3)


@each("name", ["loop.example.com", "a" * 64 + ".example", "a..example", "x." * 128])
def test_a_name_that_cannot_be_queried_is_a_dns_error(server, name):
    with pytest.raises(DnsError):
        look_up(server, name, "A", seconds=0.3)


def test_an_error_of_one_type_leaves_the_others(server):
    assert look_up(server, "half.example", "A").records == ("192.0.2.3",)


def test_a_truncated_answer_is_queried_again_over_tcp(server):
    assert len(look_up(server, "large.example", "TXT").records) == 40
    assert ("large.example", "TXT", "tcp") in server.questions


def test_a_second_server_answers_for_a_silent_one(server):
    with NameServer({"example.com": SILENCE}) as silent:
        resolver = Resolver([silent.address, server.address], lifetime_seconds=4.0, try_seconds=0.2)
        assert asyncio.run(resolver.look_up("example.com", "A")).records == ("192.0.2.1",)
        assert silent.count("example.com", "A") == 1


def test_a_lookup_ends_within_its_lifetime(server):
    started = time.monotonic()
    with pytest.raises(DnsError):
        look_up(server, "silent.example", "A", seconds=0.4)
    assert time.monotonic() - started < 1.5
