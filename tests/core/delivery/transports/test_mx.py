"""MX hosts, resolved with a real name server (F31 to F33, S6, S26)."""

from collections import Counter
from collections.abc import Iterator

import pytest

from core.delivery.transports.smtp.mx import MailLoop, MxHosts, MxLookup, NoSuchDomain, NullMx
from core.lib.network.address_guard import Guard, TargetRefused
from core.lib.network.resolver import DnsError, Resolver
from tests.core.delivery.relaying import run
from tests.core.lib.nameserver import SERVFAIL, SILENCE, NameServer
from tests.rows import each

ZONES = {
    "example.com": {"MX": ["20 b.example.com.", "10 a.example.com.", "10 c.example.com."]},
    "a.example.com": {"A": ["93.184.216.34"], "AAAA": ["2606:2800:220:1::1"]},
    "plain.example": {"A": ["93.184.216.34"]},
    "null.example": {"MX": ["0 ."]},
    "odd-null.example": {"MX": ["0 .", "10 a.example.com."]},
    "broken.example": SERVFAIL,
    "silent.example": SILENCE,
    "own.example": {"MX": ["10 a.example.com.", "20 Me.Example.net.", "30 b.example.com."]},
    "only-own.example": {"MX": ["10 me.example.net."]},
    "alias.example": {"CNAME": ["example.com."]},
    "many.example": {"MX": [f"10 mx{number}.example.com." for number in range(500)]},
    "half.example": {"A": ["93.184.216.34"], "AAAA": SERVFAIL},
    "blind.example": {"TXT": ['"nothing here"'], "AAAA": SERVFAIL},
}


@pytest.fixture(scope="module")
def server() -> Iterator[NameServer]:
    with NameServer(ZONES) as server:
        yield server


@pytest.fixture
def mx(server: NameServer) -> MxLookup:
    resolver = Resolver([server.address], lifetime_seconds=5)
    return MxLookup(resolver, Guard(), own_names=["me.example.net"])


def find(mx: MxLookup, domain: str) -> MxHosts:
    return run(mx.find(domain))


def test_hosts_are_ordered_by_preference_and_equal_ones_at_random(mx):
    orders = Counter(tuple(find(mx, "example.com").shuffled()) for _ in range(200))
    assert {order[2] for order in orders} == {"b.example.com"}
    assert {order[0] for order in orders} == {"a.example.com", "c.example.com"}


def test_domains_with_the_same_hosts_share_a_key(mx):
    assert find(mx, "example.com").key == find(mx, "alias.example").key


def test_a_domain_without_mx_is_its_own_mail_host(mx):
    assert find(mx, "plain.example").hosts == ((0, "plain.example"),)


def test_a_null_mx_accepts_no_mail(mx):
    with pytest.raises(NullMx):
        find(mx, "null.example")


def test_a_null_mx_beside_another_one_is_ignored(mx):
    """RFC 7505, section 3: a domain with a null MX has no other."""
    assert find(mx, "odd-null.example").hosts == ((10, "a.example.com"),)


@pytest.mark.parametrize("domain", ["broken.example", "silent.example"])
def test_a_failed_lookup_is_not_treated_as_missing_mx(mx, server, domain):
    with pytest.raises(DnsError):
        find(mx, domain)
    assert server.count(domain, "A") == 0


def test_a_domain_that_does_not_exist_has_no_host(mx):
    with pytest.raises(NoSuchDomain):
        find(mx, "nowhere.example")


def test_hosts_not_preferred_to_this_server_are_excluded(mx):
    assert find(mx, "own.example").hosts == ((10, "a.example.com"),)
    with pytest.raises(MailLoop):
        find(mx, "only-own.example")


def test_at_most_ten_hosts_are_tried(mx):
    assert len(find(mx, "many.example").shuffled()) == 10


def test_hosts_are_cached_and_failures_are_not(server):
    mx = MxLookup(Resolver([server.address], lifetime_seconds=5), Guard())
    with NameServer({"x.example": {"MX": ["10 a.example.com."]}}) as own:
        mx = MxLookup(Resolver([own.address], lifetime_seconds=5), Guard())
        for _ in range(3):
            find(mx, "X.example.")
        assert own.count("x.example", "MX") == 1
        for _ in range(2):
            with pytest.raises(NoSuchDomain):
                find(mx, "nowhere.example")
        assert own.count("nowhere.example", "MX") == 2


def test_the_cache_of_hosts_is_bounded(mx, monkeypatch):
    monkeypatch.setattr("core.delivery.transports.smtp.mx.MAX_CACHED_DOMAINS", 2)
    for domain in ("example.com", "plain.example", "alias.example"):
        find(mx, domain)
    assert list(mx._cache) == ["plain.example", "alias.example"]


class TestAddresses:
    def test_both_families_are_found(self, mx):
        found = run(mx.addresses("a.example.com"))
        assert [str(one) for one in found] == ["2606:2800:220:1::1", "93.184.216.34"]

    def test_one_family_is_enough(self, mx):
        assert [str(one) for one in run(mx.addresses("half.example"))] == ["93.184.216.34"]

    def test_a_host_has_no_address_only_if_both_lookups_succeed(self, mx):
        with pytest.raises(DnsError):
            run(mx.addresses("blind.example"))
        with pytest.raises(NoSuchDomain):
            run(mx.addresses("null.example"))

    @each(
        "addresses", [["127.0.0.1"], ["10.0.0.1"], ["93.184.216.34", "192.168.0.1"], ["169.254.169.254"], ["0.0.0.0"]]
    )
    def test_a_private_address_rejects_the_whole_host(self, addresses):
        with NameServer({"mx.example.com": {"A": addresses}}) as server:
            mx = MxLookup(Resolver([server.address], lifetime_seconds=5), Guard())
            with pytest.raises(TargetRefused):
                run(mx.addresses("mx.example.com"))

    @each("host", ["192.0.2.1", "93.184.216.34", "[2606:2800:220:1::1]", "localhost", "mx.internal"])
    def test_a_host_without_a_public_name_is_refused(self, mx, host):
        with pytest.raises(TargetRefused):
            run(mx.addresses(host))
