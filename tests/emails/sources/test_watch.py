"""Own addresses are looked up hourly; the staff hear of each new listing once (docs/decisions/0349)."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from ipaddress import ip_address

import pytest
from django.db.models import F
from django.db.models.functions import Now

from console.system_mail.models import SystemMail
from core.delivery.transports.transports_file import TransportRoute, Transports, TransportSpec, single_transport
from emails.models import SourceListing, WatchedSource
from emails.sources import watch
from emails.sources.listed import addresses_to_leave
from emails.sources.own_addresses import watched_addresses
from emails.sources.watch import watch_sources
from emails.tasks import watch as watch_task
from tests.core.lib.nameserver import SERVFAIL, SILENCE, NameServer
from tests.rows import each
from tests.threads import own_connection

pytestmark = pytest.mark.django_db

# Public addresses, since those of documentation are refused like private ones; only the local name server is asked.
FIRST, SECOND, V6 = "9.9.9.10", "9.9.9.11", "2620:fe::10"
ZONES = {
    "2.0.0.127.bl.example.net": {"A": ["127.0.0.2"]},
    "2.0.0.127.dnsbl.example.org": {"A": ["127.0.0.2"]},
    "10.9.9.9.in-addr.arpa": {"PTR": ["mta1.example.com."]},
    "mta1.example.com": {"A": [FIRST]},
}
ON_FIRST = "10.9.9.9.bl.example.net"


def name_sources(settings, *addresses, leave=False, kind="direct"):
    sources = tuple(map(ip_address, addresses))
    spec = TransportSpec(name="own", kind=kind, source_addresses=sources, leave_when_listed=leave)
    settings.TRANSPORTS = Transports({"own": spec}, {"default": TransportRoute("default", ("own",))}, {})


@pytest.fixture
def dns(settings, alice, monkeypatch):
    type(alice.owner).objects.filter(id=alice.owner.id).update(is_staff=True)
    name_sources(settings, FIRST, SECOND)
    settings.BLOCKLISTS = ["bl.example.net", "dnsbl.example.org"]
    settings.DELIVERY_ALLOW_PRIVATE_NETWORKS = False
    monkeypatch.setattr(watch, "LOOKUP_SECONDS", 0.5)
    with NameServer(ZONES) as server:
        settings.DNS_SERVERS = [server.address]
        yield server


def put_back(**age):
    WatchedSource.objects.update(looked_up_at=Now() - timedelta(**age))


def look_again():
    put_back(hours=2)
    watch_sources()


def an_hour_passes():
    """Return since when the first address is listed, and the time of the last answer."""
    hour = timedelta(hours=1)
    SourceListing.objects.update(listed_at=F("listed_at") - hour, checked_at=F("checked_at") - hour)
    return listing().listed_at, listing().checked_at


def listing(address=FIRST, name="bl.example.net"):
    return SourceListing.objects.get(source__address=address, name=name)


class TestLookups:
    def test_are_kept_for_each_address_and_list(self, dns):
        watch_task()
        rows = SourceListing.objects.of([FIRST, SECOND], lists=["bl.example.net", "dnsbl.example.org"])
        assert [(str(row), row.listed_at, row.error) for row in rows] == [
            (f"{FIRST}: bl.example.net", None, ""),
            (f"{FIRST}: dnsbl.example.org", None, ""),
            (f"{SECOND}: bl.example.net", None, ""),
            (f"{SECOND}: dnsbl.example.org", None, ""),
        ]
        assert all(row.checked_at for row in rows)
        first, second = WatchedSource.objects.order_by("address")
        assert (first.reverse_status, first.reverse_names) == ("confirmed", ["mta1.example.com"])
        assert (second.reverse_status, second.reverse_names) == ("missing", [])
        assert not SystemMail.objects.exists()

    def test_are_repeated_after_an_hour(self, dns):
        watch_sources()
        asked = len(dns.questions)
        put_back(minutes=59)
        watch_sources()
        assert len(dns.questions) == asked
        put_back(minutes=61)
        watch_sources()
        assert len(dns.questions) == 2 * asked

    def test_test_each_list_once(self, dns):
        watch_sources()
        assert dns.count("2.0.0.127.bl.example.net", "A") == 1
        assert dns.count("1.0.0.127.bl.example.net", "A") == 1

    def test_have_an_end(self, dns, settings, monkeypatch):
        monkeypatch.setattr(watch, "TOTAL_SECONDS", 1.5)
        monkeypatch.setattr(watch, "LOOKUP_SECONDS", 5.0)
        dns.put("2.0.0.127.bl.example.net", SILENCE)
        dns.put("10.9.9.9.in-addr.arpa", SILENCE)
        watch_sources()
        assert listing().error == watch.UNANSWERED
        assert listing(name="dnsbl.example.org").error == ""
        assert WatchedSource.objects.get(address=FIRST).reverse_error == watch.UNANSWERED

    @each("changes", [
        {"BLOCKLISTS": []},
        {"TRANSPORTS": single_transport("direct")},
        {"TRANSPORTS": single_transport("smtp")},
    ])  # fmt: skip
    def test_need_lists_and_addresses(self, dns, settings, changes):
        for name, value in changes.items():
            setattr(settings, name, value)
        watch_sources()
        assert dns.questions == []
        assert not WatchedSource.objects.exists()

    def test_are_not_made_for_private_addresses(self, dns, settings):
        name_sources(settings, "127.0.0.3")
        watch_sources()
        assert dns.questions == []
        settings.DELIVERY_ALLOW_PRIVATE_NETWORKS = True
        assert [*watched_addresses()] == [ip_address("127.0.0.3")]

    def test_of_ipv6_use_nibbles(self, dns, settings):
        name_sources(settings, V6)
        name = f"0.1.0.0.{'0.' * 20}e.f.0.0.0.2.6.2.bl.example.net"
        dns.put(name, {"A": ["127.0.0.3"]})
        watch_sources()
        assert listing(V6).codes == "127.0.0.3"

    def test_forget_addresses_and_lists_that_are_gone_from_the_settings(self, dns, settings):
        watch_sources()
        settings.BLOCKLISTS = ["bl.example.net"]
        name_sources(settings, FIRST)
        put_back(minutes=90)
        watch_sources()
        # The processes that were not restarted yet may know it.
        assert WatchedSource.objects.count() == 2
        put_back(hours=3)
        watch_sources()
        assert [str(row) for row in SourceListing.objects.all()] == [f"{FIRST}: bl.example.net"]
        assert WatchedSource.objects.get().address == FIRST
        settings.BLOCKLISTS = []
        put_back(hours=3)
        watch_sources()
        assert not WatchedSource.objects.exists()


class TestListing:
    def test_is_told_once_to_the_staff(self, dns):
        dns.put(ON_FIRST, {"A": ["127.0.0.2", "127.0.0.9"], "TXT": ['"https://bl.example.net/?<b>9.9.9.10"']})
        watch_sources()
        since, checked_at = an_hour_passes()
        look_again()
        assert listing().listed_at == since
        assert listing().checked_at > checked_at
        mail = SystemMail.objects.get()
        assert (mail.recipient, mail.subject) == ("alice@alice.example", f"On a block list: {FIRST}")
        assert f"{FIRST}: bl.example.net (127.0.0.2, 127.0.0.9)" in mail.text
        assert "Text of the list: “https://bl.example.net/?<b>9.9.9.10”" in mail.text
        assert "/admin/sources/" in mail.text

    def test_of_many_addresses_is_one_email(self, dns, settings):
        addresses = [f"9.9.9.{number}" for number in range(100, 130)]
        name_sources(settings, *addresses)
        for address in addresses:
            dns.put(ip_address(address).reverse_pointer.replace("in-addr.arpa", "bl.example.net"), {"A": ["127.0.0.2"]})
        watch_sources()
        mail = SystemMail.objects.get()
        assert mail.text.count("(127.0.0.2)") == 20
        assert "And 10 more." in mail.text

    def test_is_in_the_language_of_the_reader_with_the_page_for_removals(self, dns, settings, alice):
        type(alice.owner).objects.filter(id=alice.owner.id).update(language="de")
        settings.BLOCKLISTS = ["zen.spamhaus.org"]
        dns.put("2.0.0.127.zen.spamhaus.org", {"A": ["127.0.0.2", "127.0.0.4", "127.0.0.10"]})
        dns.put("10.9.9.9.zen.spamhaus.org", {"A": ["127.0.0.3"]})
        watch_sources()
        mail = SystemMail.objects.get()
        assert mail.subject == f"Auf einer Blockliste: {FIRST}"
        assert f"https://check.spamhaus.org/results/?query={FIRST}" in mail.text

    def test_ends_when_the_list_has_no_name_any_more(self, dns):
        dns.put(ON_FIRST, {"A": ["127.0.0.2"], "TXT": ['"spam"']})
        watch_sources()
        dns.remove(ON_FIRST)
        look_again()
        row = listing()
        assert (row.listed_at, row.codes, row.text) == (None, "", "")

    def test_that_comes_and_goes_is_told_once_a_day(self, dns):
        for _ in range(3):
            dns.put(ON_FIRST, {"A": ["127.0.0.2"]})
            look_again()
            dns.remove(ON_FIRST)
            look_again()
        assert SystemMail.objects.count() == 1
        SourceListing.objects.update(notified_at=Now() - timedelta(hours=25))
        dns.put(ON_FIRST, {"A": ["127.0.0.2"]})
        look_again()
        assert SystemMail.objects.count() == 2

    @each("answer", [
        SILENCE, SERVFAIL, {"A": ["127.255.255.254"]}, {"A": ["127.255.255.255"]}, {"A": ["127.0.0.1"]},
        {"A": ["203.0.113.1"]},
    ])  # fmt: skip
    def test_is_kept_while_the_list_cannot_be_asked(self, dns, answer):
        dns.remove(ON_FIRST)
        watch_sources()
        dns.put(ON_FIRST, answer)
        look_again()
        assert listing().listed_at is None
        assert listing().error
        dns.put(ON_FIRST, {"A": ["127.0.0.2"]})
        look_again()
        since, checked_at = an_hour_passes()
        dns.put(ON_FIRST, answer)
        look_again()
        row = listing()
        assert (row.listed_at, row.checked_at, row.codes) == (since, checked_at, "127.0.0.2")
        assert row.error
        assert SystemMail.objects.count() == 1

    def test_is_unknown_on_a_list_that_has_every_address(self, dns):
        dns.put("1.0.0.127.bl.example.net", {"A": ["127.0.0.2"]})
        dns.put(ON_FIRST, {"A": ["127.0.0.2"]})
        watch_sources()
        row = listing()
        assert (row.listed_at, row.checked_at) == (None, None)
        assert "has every address" in row.error

    def test_never_shows_the_key_of_a_customer(self, dns, settings):
        key = "abcdefghijklmnopqrstuvwxyz"
        settings.BLOCKLISTS = [f"{key}.zen.dq.spamhaus.net"]
        dns.put(f"2.0.0.127.{key}.zen.dq.spamhaus.net", SERVFAIL)
        watch_sources()
        row = listing(name="zen.dq.spamhaus.net")
        assert row.error == "the lookup failed: NoNameservers"
        dns.put(f"2.0.0.127.{key}.zen.dq.spamhaus.net", {"A": ["127.0.0.2"]})
        dns.put(f"10.9.9.9.{key}.zen.dq.spamhaus.net", {"A": ["127.0.0.2"]})
        look_again()
        assert key not in SystemMail.objects.get().text
        assert key not in str(SourceListing.objects.values())


@pytest.mark.django_db(transaction=True)
def test_two_runs_at_the_same_time_tell_once(dns):
    dns.put(ON_FIRST, {"A": ["127.0.0.2"]})
    with ThreadPoolExecutor(2) as threads:
        for run in [threads.submit(own_connection(watch_sources)) for _ in range(2)]:
            run.result(timeout=30)
    assert SystemMail.objects.count() == 1


class TestAddressesToLeave:
    def test_are_those_that_a_list_of_the_settings_has_now(self, dns, settings):
        dns.put(ON_FIRST, {"A": ["127.0.0.2"]})
        watch_sources()
        assert addresses_to_leave() == set()
        name_sources(settings, FIRST, SECOND, leave=True)
        assert addresses_to_leave() == {ip_address(FIRST)}
        settings.BLOCKLISTS = ["dnsbl.example.org"]
        assert addresses_to_leave() == set()
        settings.BLOCKLISTS = ["bl.example.net"]
        # The list has not answered since.
        SourceListing.objects.update(checked_at=Now() - timedelta(hours=25))
        assert addresses_to_leave() == set()
        SourceListing.objects.update(checked_at=Now() - timedelta(hours=23))
        assert addresses_to_leave() == {ip_address(FIRST)}
        dns.remove(ON_FIRST)
        look_again()
        assert addresses_to_leave() == set()
