"""Page of the staff admin about sending addresses (docs/decisions/0349)."""

import re
from datetime import date
from ipaddress import ip_address

import pytest
from django.utils.html import escape

from core.delivery.sources.answers import ListingAnswer, ReverseName, ReverseStatus
from core.delivery.transports.transports_file import TransportRoute, Transports, TransportSpec, single_transport
from core.workspaces.models import User
from emails.sources.watch import SourceFinding, record_findings
from tests.console.dashboard.conftest import shown_text

SOURCES = "/admin/sources/"
FIRST, SECOND = ip_address("9.9.9.9"), ip_address("2620:fe::9")
HOSTILE = "<script>alert(1)</script> \u2066https://evil.example"


@pytest.fixture
def watched(settings):
    own = TransportSpec(name="own", kind="direct", source_addresses=(FIRST, SECOND))
    bulk = TransportSpec(name="bulk", kind="direct", source_addresses=(SECOND,))
    settings.TRANSPORTS = Transports(
        {"own": own, "bulk": bulk}, {"default": TransportRoute("default", ("own", "bulk"))}, {"default": ("default",)}
    )
    settings.BLOCKLISTS = ["zen.spamhaus.org", "bl.example.net"]


@pytest.fixture
def listed(watched):
    missing, confirmed = ReverseName(ReverseStatus.MISSING), ReverseName(ReverseStatus.CONFIRMED, ("mta1.example.com",))
    failed = ListingAnswer(None, error="the list refuses queries of public resolvers")
    clean, spam = ListingAnswer(False), ListingAnswer(True, ("127.0.0.2",), HOSTILE)
    record_findings(
        {
            FIRST: SourceFinding(missing, {"zen.spamhaus.org": spam, "bl.example.net": failed}),
            SECOND: SourceFinding(confirmed, {"zen.spamhaus.org": clean, "bl.example.net": clean}),
        }
    )


def test_it_shows_each_address_and_the_answer_of_each_list(staff, listed):
    response = staff.get(SOURCES)
    text = shown_text(response)
    assert "9.9.9.9 own no name -" in text
    assert "2620:fe::9 own, bulk confirmed mta1.example.com" in text
    assert "bl.example.net unknown - - Last lookup: the list refuses queries of public resolvers" in text
    content = response.content.decode()
    assert escape(HOSTILE) in content
    assert "<script>alert" not in content
    assert 'href="https://check.spamhaus.org/results/?query=9.9.9.9"' in content
    # Listings come first.
    assert text.index("zen.spamhaus.org listed") < text.index("2620:fe::9 bl.example.net not listed")


def test_it_shows_the_first_day_of_a_new_address(staff, settings):
    own = TransportSpec(name="own", kind="direct", source_addresses=(FIRST, SECOND), since={FIRST: date(2026, 12, 1)})
    routes = {"default": TransportRoute("default", ("own",))}
    settings.TRANSPORTS = Transports({"own": own}, routes, {"default": ("default",)})
    text = shown_text(staff.get(SOURCES))
    assert "9.9.9.9 new since 2026-12-01 own" in text
    assert "2620:fe::9 own" in text


def test_cells_are_labelled_for_phones_in_german(staff, listed):
    User.objects.filter(is_staff=True).update(language="de")
    content = staff.get(SOURCES).content.decode()
    tables = re.findall('<table class="pr-headers pr-data">.*?</table>', content, re.DOTALL)
    assert len(tables) == 2
    for table in tables:
        columns = re.findall(r'<th scope="col"[^>]*>(.*?)</th>', table)
        assert re.findall('<td data-label="(.*?)"', table) == columns * (table.count("<tr>") - 1)
    assert "Sendeadressen" in content


def test_it_explains_why_nothing_is_watched(staff, settings, watched):
    assert "9.9.9.9 own unknown -" in shown_text(staff.get(SOURCES))
    settings.BLOCKLISTS = []
    assert "BLOCKLISTS is empty." in shown_text(staff.get(SOURCES))
    settings.BLOCKLISTS, settings.TRANSPORTS = ["zen.spamhaus.org"], single_transport("direct")
    assert "Only public addresses" in shown_text(staff.get(SOURCES))


def test_operations_and_transports_lead_to_it(staff, listed):
    page = staff.get("/admin/")
    assert "1 sending address is on a block list." in shown_text(page)
    assert f'href="{SOURCES}"' in page.content.decode()
    assert f'href="{SOURCES}"' in staff.get("/admin/transports/").content.decode()


def test_it_is_for_the_staff_only(client, api):
    assert client.get(SOURCES).status_code == 302
