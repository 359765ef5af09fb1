"""Lookups in block lists and of reverse names, against a real name server."""

import asyncio
from collections.abc import Iterator
from ipaddress import ip_address

import pytest

from core.delivery.sources.answers import ReverseStatus
from core.delivery.sources.lookups import (
    LISTS_ALL,
    MAX_TEXT,
    NO_TEST_ENTRY,
    find_list_error,
    look_up_listing,
    look_up_reverse_name,
    query_name,
)
from core.lib.network.resolver import Resolver
from tests.core.lib.nameserver import GARBAGE, REFUSED, SERVFAIL, SILENCE, NameServer
from tests.rows import each

ZONE = "bl.example.net"
V4, V6 = ip_address("192.0.2.10"), ip_address("2001:db8::10")
NAME_4 = f"10.2.0.192.{ZONE}"
NIBBLES = "0.1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.8.b.d.0.1.0.0.2"
NAME_6 = f"{NIBBLES}.{ZONE}"
TESTED = f"2.0.0.127.{ZONE}"
TESTED_6 = f"2.0.0.0.0.0.f.7.f.f.f.f.{'0.' * 20}{ZONE}"
UNLISTED = f"1.0.0.127.{ZONE}"


@pytest.fixture
def server() -> Iterator[NameServer]:
    with NameServer({TESTED: {"A": ["127.0.0.2"]}}) as server:
        yield server


def resolver(server):
    return Resolver([server.address], lifetime_seconds=0.4)


def listing(server, address=V4):
    return asyncio.run(look_up_listing(resolver(server), address, ZONE))


def list_error(server):
    return asyncio.run(find_list_error(resolver(server), ZONE))


def reverse(server, address=V4):
    return asyncio.run(look_up_reverse_name(resolver(server), address))


class TestListing:
    @each(("address", "name"), [(V4, NAME_4), (V6, NAME_6)])
    def test_is_looked_up_by_reversed_digits(self, server, address, name):
        assert query_name(address, ZONE) == name
        server.put(name, {"A": ["127.0.0.4", "127.0.0.2"], "TXT": ['"Blocked, " "see https://bl.example.net"']})
        answer = listing(server, address)
        assert (answer.is_listed, answer.codes) == (True, ("127.0.0.2", "127.0.0.4"))
        assert answer.text == "Blocked, see https://bl.example.net"

    def test_without_a_name_is_none_and_asks_for_no_text(self, server):
        assert listing(server).is_listed is False
        assert server.count(NAME_4, "TXT") == 0

    def test_with_other_records_only_is_none(self, server):
        server.put(NAME_4, {"TXT": ['"x"']})
        assert listing(server).is_listed is False

    @each("failure", [SERVFAIL, REFUSED, SILENCE, GARBAGE])
    def test_of_a_failed_lookup_is_unknown(self, server, failure):
        server.put(NAME_4, failure)
        answer = listing(server)
        assert answer.is_listed is None
        assert answer.error.startswith("the lookup failed: ")
        assert ZONE not in answer.error

    def test_of_a_refused_query_is_unknown(self, server):
        server.put(NAME_4, {"A": ["127.255.255.254"], "TXT": ['"Error: open resolver"']})
        answer = listing(server)
        assert (answer.is_listed, answer.text) == (None, "")
        assert "public resolvers" in answer.error

    @each("rows", [SERVFAIL, SILENCE, []])
    def test_needs_no_text(self, server, rows):
        server.put(NAME_4, {"A": ["127.0.0.2"], "TXT": rows})
        assert (listing(server).is_listed, listing(server).text) == (True, "")

    def test_has_a_text_of_one_short_line_without_control_characters(self, server):
        hostile = r'"a\000b\027[31mred\010\013\010<script>\226\128\174" ' + " ".join(
            '"' + "x" * 200 + '"' for _ in range(20)
        )
        server.put(NAME_4, {"A": ["127.0.0.2"], "TXT": [hostile, '"second"']})
        text = listing(server).text
        assert len(text) == MAX_TEXT
        assert text.isprintable()
        assert r"a\x00b\x1b[31mred <script>\x202e" in text

    def test_takes_a_few_codes_of_many(self, server):
        server.put(NAME_4, {"A": [f"127.0.1.{number}" for number in range(1, 200)]})
        assert len(listing(server).codes) == 10


class TestList:
    def test_with_its_test_entry_can_be_asked(self, server):
        assert list_error(server) == ""

    def test_of_ipv6_only_can_be_asked(self, server):
        server.remove(TESTED)
        server.put(TESTED_6, {"A": ["127.0.0.2"]})
        assert list_error(server) == ""

    def test_that_was_closed_cannot_be_asked(self, server):
        server.remove(TESTED)
        assert list_error(server) == NO_TEST_ENTRY

    def test_that_has_all_addresses_cannot_be_asked(self, server):
        server.put(UNLISTED, {"A": ["127.0.0.2"]})
        assert list_error(server) == LISTS_ALL

    def test_that_refuses_this_resolver_cannot_be_asked(self, server):
        server.put(TESTED, {"A": ["127.255.255.255"]})
        assert "refuses further queries" in list_error(server)

    def test_that_does_not_respond_is_asked_once(self, server):
        server.put(TESTED, SILENCE)
        assert list_error(server) == "the lookup failed: LifetimeTimeout"
        assert server.count(TESTED_6, "A") == 0


class TestReverseName:
    @each(("address", "pointer", "kind"), [
        (V4, "10.2.0.192.in-addr.arpa", "A"),
        (V6, f"{NIBBLES}.ip6.arpa", "AAAA"),
    ])  # fmt: skip
    def test_is_confirmed_by_its_address(self, server, address, pointer, kind):
        server.put(pointer, {"PTR": ["other.example.com.", "MTA1.example.com."]})
        server.put("mta1.example.com", {kind: [str(address)]})
        found = reverse(server, address)
        assert (found.status, found.names) == (ReverseStatus.CONFIRMED, ("mta1.example.com", "other.example.com"))

    def test_is_unconfirmed_if_it_has_another_address(self, server):
        server.put("10.2.0.192.in-addr.arpa", {"PTR": ["mta1.example.com."]})
        server.put("mta1.example.com", {"A": ["192.0.2.11"], "AAAA": ["2001:db8::10"]})
        assert reverse(server).status is ReverseStatus.UNCONFIRMED

    def test_is_missing_without_a_record(self, server):
        assert (reverse(server).status, reverse(server).names) == (ReverseStatus.MISSING, ())

    @each("failure", [SERVFAIL, SILENCE])
    def test_is_unknown_if_a_lookup_fails(self, server, failure):
        server.put("10.2.0.192.in-addr.arpa", failure)
        assert reverse(server).status is None
        server.put("10.2.0.192.in-addr.arpa", {"PTR": ["mta1.example.com."]})
        server.put("mta1.example.com", failure)
        found = reverse(server)
        assert (found.status, bool(found.error)) == (None, True)

    def test_is_looked_up_for_a_few_names_only(self, server):
        names = [f"host{number:02}.example.com" for number in range(40)]
        server.put("10.2.0.192.in-addr.arpa", {"PTR": [f"{name}." for name in names]})
        found = reverse(server)
        assert (found.status, found.names) == (ReverseStatus.UNCONFIRMED, tuple(names[:5]))
        assert sum(kind == "A" for _, kind, _ in server.questions) == 5
