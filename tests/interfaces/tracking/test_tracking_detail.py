"""trackingDetail of a stream: what opens and clicks leave behind (docs/decisions/0376)."""

import json
from datetime import UTC, datetime

import pytest
from django.db import connection

from analytics.outcomes import read_stream_outcomes
from core.counters import counters
from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply
from emails.feedback.opens_and_clicks import EVENTS_PER_LINK
from emails.models import HitCount, Recipient
from emails.sending.outcomes import SendResult, record_results
from emails.upkeep.reconcile import find_differences
from events.kinds import EventKind
from events.models import Event
from events.recording import NewEvent, record_events
from interfaces.inbound.models import ProviderReport
from interfaces.inbound.processing import process_reports
from streams.models import Stream
from tests.conftest import Account, Api, mail
from tests.emails.builders import LATER, OK, claim_entries, deliver, send
from tests.interfaces.inbound.test_providers import MESSAGE_ID, SECRET
from tests.interfaces.inbound.test_providers import event as provider_event
from tests.interfaces.inbound.test_providers import post as call_webhook
from tests.interfaces.tracking.conftest import TARGET, Reader, make_reader

pytestmark = pytest.mark.django_db

ADDRESS, PROGRAM = "198.51.100.77", "Mozilla/5.0 (X11; Linux x86_64) ReadersProgram/7.7"
READER = {"user_agent": PROGRAM, "x_forwarded_for": ADDRESS}
TABLES = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'"


def database_rows() -> set[tuple[str, str]]:
    """Return each row of each table as text."""
    with connection.cursor() as cursor:
        cursor.execute(TABLES)
        tables = [name for (name,) in cursor.fetchall()]
        rows = set()
        for table in tables:
            cursor.execute(f'SELECT t::text FROM "{table}" t')
            rows |= {(table, text) for (text,) in cursor.fetchall()}
    return rows


def transaction_time() -> str:
    """Return the time that every row of the test's transaction gets, without its zone."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_char(now(), 'YYYY-MM-DD HH24:MI:SS.US')")
        return cursor.fetchone()[0].rstrip("0")


@pytest.fixture
def choose(api: Api):
    """Set trackingDetail of `main`."""

    def set_detail(detail: str) -> None:
        response = api.patch("/streams/main", {"trackingDetail": detail})
        assert (response.status_code, response.json()["trackingDetail"]) == (200, detail), response.content

    return set_detail


def test_a_stream_stores_everything_unless_it_says_otherwise(api: Api):
    assert api.get("/streams/main").json()["trackingDetail"] == "full"
    created = api.post("/streams", {"id": "news", "name": "News", "kind": "bulk"}).json()
    assert created["trackingDetail"] == "full"
    assert api.patch("/streams/news", {"trackingDetail": "coarse"}).json()["trackingDetail"] == "coarse"
    refused = api.patch("/streams/news", {"trackingDetail": "none"})
    assert (refused.status_code, [error["field"] for error in refused.json()["errors"]]) == (422, ["trackingDetail"])


@pytest.mark.parametrize("detail", ["full", "coarse", "counts"])
def test_neither_address_nor_program_of_a_reader_are_in_the_database(api: Api, reader: Reader, choose, detail):
    choose(detail)
    reader.loads_the_pixel(**READER)
    reader.clicks(**READER)
    rows = " ".join(text for _, text in database_rows())
    assert reader.recipient.address in rows
    assert ADDRESS not in rows
    assert "ReadersProgram" not in rows
    assert reader.recipient.state == "clicked"


def test_a_coarse_event_says_nothing_about_the_program(reader: Reader, choose):
    choose("coarse")
    reader.loads_the_pixel(user_agent="Mozilla/5.0")
    reader.clicks()
    email = {"emailId": reader.email.id, "to": "ada@example.com"}
    assert reader.events() == [
        ("opened", {**email, "first": True}),
        ("clicked", {**email, "first": True, "url": TARGET}),
    ]
    assert reader.recipient.opened_at is not None


def test_counts_stores_only_that_a_recipient_opened_or_clicked(reader: Reader, choose):
    choose("counts")
    before = database_rows()
    marker = transaction_time()
    reader.loads_the_pixel(times=3, **READER)
    reader.clicks(**READER)
    reader.clicks("https://shop.example/other")
    added = database_rows() - before
    # The counters have the hour in which the email was accepted.
    assert {table for table, _ in added} == {"emails_email", "emails_recipient", "analytics_tallydelta"}
    assert [text for _, text in added if marker in text] == []
    assert not Event.objects.exists()
    assert not HitCount.objects.exists()
    assert (reader.recipient.state, reader.email.status) == ("clicked", "clicked")
    assert (reader.recipient.opened_at, reader.recipient.clicked_at) == (None, None)


def test_opens_in_any_order_leave_the_same_rows(alice: Account, choose):
    choose("counts")
    readers = [make_reader(alice.workspace, state="sent") for _ in range(3)]
    for reader in (readers[1], readers[2], readers[0]):
        reader.loads_the_pixel()
    times = ("delivered_at", "opened_at", "clicked_at")
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {', '.join(f'{time}::text' for time in times)} FROM emails_recipient")
        assert set(cursor.fetchall()) == {("1970-01-01 00:00:00+00", "1970-01-01 00:00:00+00", None)}
        cursor.execute(f"SELECT {', '.join(f'{time}::text' for time in times)} FROM emails_email")
        assert set(cursor.fetchall()) == {("1970-01-01 00:00:00+00", "1970-01-01 00:00:00+00", None)}
    assert not Recipient.objects.exclude(state="opened").exists()


def test_statuses_counters_and_analytics_agree_with_a_recount(api: Api, alice: Account, choose):
    choose("counts")
    for outcome in (OK, OK, LATER):
        send(api)
        deliver(outcome)
    for recipient in Recipient.objects.all():
        Reader(recipient, alice.workspace).clicks()
    today = datetime.now(UTC).date()
    (day,) = read_stream_outcomes(alice.workspace, "main", first=today, last=today)
    assert day.reached == {"delivered": 3, "bounced": 0, "opened": 3, "clicked": 3}
    assert find_differences(alice.workspace.id) == []
    assert len(api.get("/emails?status=clicked").json()["data"]) == 3
    assert api.get("/emails?event=clicked").json()["data"] == []


def test_the_api_shows_no_time_that_is_not_known(api: Api, alice: Account, choose):
    choose("counts")
    reader = make_reader(alice.workspace, state="sent")
    reader.loads_the_pixel()
    shown = api.get(f"/emails/{reader.email.id}").json()
    assert (shown["status"], shown["deliveredAt"], shown["recipients"][0]["deliveredAt"]) == ("opened", None, None)
    assert "1970" not in json.dumps(shown)
    assert "1970" not in json.dumps(api.get("/emails").json())


def test_a_known_delivery_keeps_its_time(api: Api, alice: Account, choose):
    choose("counts")
    reader = make_reader(alice.workspace)
    delivered_at = reader.recipient.delivered_at
    reader.clicks()
    assert (reader.recipient.delivered_at, reader.email.delivered_at) == (delivered_at, delivered_at)


def test_an_email_has_the_earliest_known_time_of_its_recipients(alice: Account, choose):
    choose("counts")
    reader = make_reader(alice.workspace)
    other = Recipient.objects.create(
        email_id=reader.recipient.email_id, kind="cc", position=1, address="bob@example.com", state="sent"
    )
    Reader(other, alice.workspace).loads_the_pixel()
    assert reader.email.status == "opened"
    assert reader.email.delivered_at == reader.recipient.delivered_at


def test_later_events_do_not_show_that_the_email_was_opened_before(alice: Account, choose):
    choose("counts")
    reader, unread = make_reader(alice.workspace), make_reader(alice.workspace)
    reader.clicks()
    for one in (reader, unread):
        record_events([NewEvent(EventKind.UNSUBSCRIBED, one.email.id, one.recipient.id, "ada@example.com")])
        record_events([NewEvent(EventKind.UNSUBSCRIBED, one.email.id)])
    assert set(Event.objects.values_list("status", flat=True)) == {"delivered"}


def test_a_click_while_the_message_is_being_sent_survives_the_outcome(api: Api, alice: Account, choose):
    choose("counts")
    api.post("/emails/send", mail())
    (claim,) = claim_entries(10)
    reader = Reader(Recipient.objects.get(), alice.workspace)
    reader.clicks()
    record_results([SendResult(claim, DeliveryOutcome(DeliveryStatus.DELIVERED, Reply(250, "OK")))])
    reader.recipient.refresh_from_db()
    assert (reader.recipient.state, reader.email.status) == ("clicked", "clicked")
    assert reader.recipient.sent_at is not None
    assert counters.total(alice.workspace.id, keys=["reached.delivered"]) == 1


def test_a_change_holds_for_accepted_emails_at_once_and_changes_no_stored_event(reader: Reader, choose):
    reader.loads_the_pixel()
    choose("counts")
    reader.loads_the_pixel()
    reader.clicks()
    assert reader.kinds() == ["opened"]
    assert reader.recipient.state == "clicked"
    assert reader.recipient.opened_at is not None
    choose("full")
    reader.clicks()
    assert reader.kinds() == ["opened", "clicked"]


def test_each_stream_has_its_own_detail(api: Api, alice: Account, bob: Account, choose):
    choose("counts")
    api.post("/streams", {"id": "news", "name": "News", "kind": "bulk"})
    # The same name in another workspace.
    Stream.objects.create(workspace=bob.workspace, slug="news", name="News", tracking_detail="counts")
    main, news = make_reader(alice.workspace), make_reader(alice.workspace, stream="news")
    foreign = make_reader(bob.workspace)
    for reader in (main, news, foreign):
        reader.loads_the_pixel(times=EVENTS_PER_LINK + 1)
    assert [len(reader.events()) for reader in (main, news, foreign)] == [0, EVENTS_PER_LINK, EVENTS_PER_LINK]


def test_the_report_of_a_provider_goes_with_the_time_it_has(alice: Account, choose, settings):
    settings.ANYMAIL_WEBHOOK_SECRET = SECRET
    choose("counts")
    reader = make_reader(alice.workspace, provider_message_id=MESSAGE_ID)
    assert call_webhook(provider_event("Open")).status_code == 200
    assert ProviderReport.objects.count() == 1
    process_reports()
    assert reader.email.status == "opened"
    assert not ProviderReport.objects.exists()
    assert not Event.objects.exists()
