"""The page Bounces: reasons and receiving hosts with advice, by kind of event, period and stream."""

from datetime import UTC, datetime, timedelta

from django.utils import timezone
from django.utils.html import strip_tags

from analytics import bounces
from console.dashboard.pages.bounces.page import start_of_period
from emails.models import Email, QueueEntry
from events.models import Event
from streams.services import create_stream
from tests.conftest import make_domain
from tests.console.dashboard.conftest import signed_in
from tests.console.dashboard.scenario import failed_email, make_bounces
from tests.emails.builders import accept
from tests.emails.pacing.test_paces import hold
from tests.emails.receivers.builders import make_limited

PAGE = "/dashboard/bounces/"


def text_of(page) -> str:
    """Return the text of a page, with a space between cells."""
    return " ".join(strip_tags(page.content.decode().replace("<", " <")).split())


def rows(owner, query: str = "") -> list[tuple[str, int]]:
    return [(row.code, row.recipients) for row in owner.get(f"{PAGE}{query}").context["reasons"]]


def test_reasons_and_hosts_are_shown_with_advice_and_links(owner, alice):
    make_bounces(alice.workspace)

    page = owner.get(PAGE)
    assert (page.context["hosts"][0].title, page.context["hosts"][0].recipients) == ("Google", 9)
    text = text_of(page)
    assert "This mailbox does not exist. unknown_user Remove these addresses from your lists" in text
    assert "14 73.7%" in text
    assert "552 5.2.2 Requested mail action aborted: exceeded quota" in text
    source = page.content.decode()
    assert 'href="/docs/guides/bounce-causes#full-mailboxes"' in source
    assert f'href="/dashboard/emails/{Email.objects.get().id}/"' in source
    assert "@gmail.com" not in source


def test_a_workspace_without_bounces_has_an_empty_page(owner, bob):
    failed_email(bob.workspace)

    assert "No bounces in this period" in text_of(owner.get(PAGE))
    assert "No deferrals in this period" in text_of(owner.get(f"{PAGE}?event=deferred"))


def test_kinds_of_events_and_periods_are_chosen(owner, alice):
    failed_email(alice.workspace, created_at=datetime.now(UTC) - timedelta(days=20))
    failed_email(alice.workspace, created_at=datetime.now(UTC) - timedelta(days=60))

    assert rows(owner) == rows(owner, "?days=30") == rows(owner, "?days=nonsense&event=opened") == [("unknown_user", 1)]
    assert rows(owner, "?days=90") == [("unknown_user", 2)]
    assert rows(owner, "?days=7") == rows(owner, "?event=failed") == []


def test_a_stream_is_chosen(owner, alice):
    create_stream(alice.workspace, slug="newsletter", name="Newsletter")
    failed_email(alice.workspace)
    failed_email(alice.workspace, stream="newsletter")

    assert rows(owner) == [("unknown_user", 2)]
    assert rows(owner, "?stream=newsletter") == rows(owner, "?stream=main") == [("unknown_user", 1)]


def test_a_period_begins_at_midnight_in_the_time_zone_of_the_member():
    for zone, start in (
        ("UTC", "2026-03-25T00:00:00+00:00"),
        # Across the beginning of summer time.
        ("Europe/Berlin", "2026-03-25T00:00:00+01:00"),
        ("Asia/Tokyo", "2026-03-26T00:00:00+09:00"),
        ("America/Los_Angeles", "2026-03-25T00:00:00-07:00"),
    ):
        with timezone.override(zone):
            assert start_of_period(datetime(2026, 3, 31, 16, tzinfo=UTC), days=7).isoformat() == start


def test_a_bounce_of_the_first_day_in_the_time_zone_counts(alice):
    alice.owner.time_zone = "Pacific/Kiritimati"
    alice.owner.save()
    first = datetime.now(UTC).astimezone(timezone.zoneinfo.ZoneInfo("Pacific/Kiritimati")) - timedelta(days=6)
    midnight = first.replace(hour=0, minute=0, second=0, microsecond=0)
    for minutes in (-1, 1):
        failed_email(alice.workspace, created_at=midnight + timedelta(minutes=minutes))

    assert rows(signed_in(alice.owner), "?days=7") == [("unknown_user", 1)]


def test_a_cut_period_is_noted(owner, alice, monkeypatch):
    monkeypatch.setattr(bounces, "MAX_EVENTS", 5)
    make_bounces(alice.workspace)

    page = owner.get(PAGE)

    assert page.context["causes"].recipients == 5
    assert "Only the newest" in text_of(page)


def test_german_pages_have_german_advice(owner, alice):
    failed_email(alice.workspace)

    text = text_of(owner.get(PAGE, HTTP_ACCEPT_LANGUAGE="de"))

    assert "Entfernen Sie diese Adressen aus Ihren Listen" in text
    assert "100,0\u00a0%" in text or "100,0 %" in text
    # A bounce without details.
    Event.objects.filter(kind="bounced").update(payload={})
    assert rows(owner) == [("undetermined", 1)]


def test_receivers_that_email_of_the_workspace_waits_for_are_named(owner, alice, bob):
    for account, receiver in ((alice, "google"), (bob, "yahoo")):
        make_domain(account.workspace, f"{account.workspace.name}.example")
        accept(account.workspace, count=2)
        hold(make_limited(receiver).id)

    page = text_of(owner.get(PAGE))
    assert "Receivers that take email slowly now Receiver Waiting Oldest Google 2" in page
    assert "Yahoo" not in page
    QueueEntry.objects.all().delete()
    assert "slowly now" not in text_of(owner.get(PAGE))
