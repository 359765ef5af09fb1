"""A bulk stream with a high bounce or complaint rate is paused; its workspace is judged by its other emails."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db.models import F
from django.utils import timezone

from analytics.reputation import services
from analytics.reputation.counting import ReputationCounter
from analytics.reputation.rates import read_rates, read_stream_rates
from console.system_mail.models import SystemMail
from console.system_mail.tasks import check_workspaces
from core.workspaces.account_status import lift_suspension, suspend_workspace
from core.workspaces.models import AuditEntry, Workspace
from emails.feedback.reports import ReportedEvent, record_reports
from emails.models import Recipient
from events.kinds import EventKind
from streams.models import Stream
from streams.services import pause_stream, resume_stream
from tests.analytics.reputation.conftest import count, is_suspended
from tests.conftest import Api, mail
from tests.emails.builders import OK, UNKNOWN_USER, deliver, fold, send
from tests.rows import each

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _limits(settings):
    settings.COMPLAINT_WARN_PERCENT, settings.COMPLAINT_PAUSE_PERCENT = None, Decimal("0.3")
    settings.BOUNCE_WARN_PERCENT, settings.BOUNCE_PAUSE_PERCENT = None, Decimal(10)


@pytest.fixture
def newsletter(alice) -> Stream:
    return Stream.objects.create(workspace=alice.workspace, slug="newsletter", number=1, name="News", kind="bulk")


def is_paused(stream: Stream) -> bool:
    stream.refresh_from_db()
    return stream.paused_at is not None


@each("folded", [True, False])
@each(
    ("counts", "paused"),
    [
        ({"sent": 10_000, "complained": 30}, False),
        ({"sent": 10_000, "complained": 31}, True),
        ({"sent": 10_000, "bounced": 1_000}, False),
        ({"sent": 10_000, "bounced": 1_001}, True),
        # Below MINIMUM_COUNTS.
        ({"sent": 9, "complained": 9}, False),
        ({}, False),
    ],
)
def test_a_bulk_stream_above_a_threshold_is_paused_instead_of_the_workspace(alice, newsletter, counts, paused, folded):
    count(alice.workspace, "newsletter", **counts)
    if folded:
        fold()
    check_workspaces()
    assert is_paused(newsletter) is paused
    assert not is_suspended(alice.workspace)


def test_the_owners_the_audit_log_and_clients_get_the_reason(api: Api, alice, newsletter, settings, caplog):
    settings.PUBLIC_URL = "https://mail.example.com"
    count(alice.workspace, "newsletter", sent=10_000, complained=42)
    for _ in range(3):
        check_workspaces()
    figure = "42 of 10,000 recipients in 7 days reported the email as spam: 0.42%, above the limit of 0.3%."
    email = SystemMail.objects.get()
    assert (email.recipient, email.subject) == (alice.owner.email, "A stream of alice is paused")
    assert figure in email.text
    assert 'The stream "newsletter" of the workspace "alice" is paused' in email.text
    assert "https://mail.example.com/dashboard/" in email.text
    entry = AuditEntry.objects.get(act="stream_paused")
    assert (entry.actor_kind, entry.about.startswith(f"newsletter: {figure}")) == ("service", True)
    stream = api.get("/streams/newsletter").json()
    assert stream["pausedReason"] == f"{figure} Clean your lists, then contact the operator of this service."
    refused = api.post("/emails/send", mail(stream="newsletter"))
    assert (refused.status_code, refused.json()["code"]) == (403, "stream_paused")
    assert figure in refused.json()["detail"]
    assert api.post("/emails/send", mail()).status_code == 202
    (record,) = [record for record in caplog.records if record.message == "a stream was paused"]
    assert record.data["stream"] == "newsletter"


def test_the_reason_is_stored_with_its_code_for_other_languages(alice, newsletter):
    count(alice.workspace, "newsletter", sent=10_000, complained=42)
    check_workspaces()
    newsletter.refresh_from_db()
    assert newsletter.paused_code["code"] == "lib.sequence"


def test_a_transactional_stream_is_not_paused_and_counts_against_the_workspace(alice, newsletter):
    Stream.objects.update(kind="transactional")
    count(alice.workspace, "newsletter", sent=10_000, complained=42)
    check_workspaces()
    assert not is_paused(newsletter)
    assert is_suspended(alice.workspace)


def test_without_a_suspension_threshold_nothing_is_paused(alice, newsletter, settings):
    settings.COMPLAINT_PAUSE_PERCENT, settings.COMPLAINT_WARN_PERCENT = None, Decimal("0.1")
    count(alice.workspace, "newsletter", sent=10_000, complained=42)
    check_workspaces()
    assert not is_paused(newsletter)
    assert AuditEntry.objects.filter(act="owners_warned").count() == 1


@each("folded", [True, False])
@each(("complained", "suspended"), [(30, False), (31, True)])
def test_the_workspace_is_judged_by_what_is_left(alice, newsletter, complained, suspended, folded):
    count(alice.workspace, "newsletter", sent=100_000, complained=900)
    count(alice.workspace, sent=10_000, complained=complained)
    if folded:
        fold()
    check_workspaces()
    assert is_paused(newsletter)
    assert is_suspended(alice.workspace) is suspended


def test_good_emails_of_a_paused_stream_do_not_hide_bad_ones(alice, newsletter):
    count(alice.workspace, "newsletter", sent=100_000)
    pause_stream(alice.workspace, "newsletter", reason="x")
    count(alice.workspace, sent=1_000, complained=50)
    check_workspaces()
    assert is_suspended(alice.workspace)


def test_a_stream_below_the_threshold_counts_with_the_workspace(alice, newsletter):
    count(alice.workspace, "newsletter", sent=100_000, complained=100)
    count(alice.workspace, sent=1_000, complained=50)
    (rates,) = read_rates()
    assert (rates.sent, rates.counts[ReputationCounter.COMPLAINED]) == (101_000, 150)
    check_workspaces()
    assert not is_suspended(alice.workspace)


@each("folded", [True, False])
def test_emails_before_a_lifted_pause_count_neither_for_the_stream_nor_for_the_workspace(alice, newsletter, folded):
    count(alice.workspace, "newsletter", sent=10_000, complained=100)
    check_workspaces()
    resume_stream(alice.workspace, "newsletter")
    if folded:
        fold()
    for _ in range(2):
        check_workspaces()
    assert not is_paused(newsletter)
    assert not is_suspended(alice.workspace)
    # From the next day on, emails count again.
    Stream.objects.update(judged_from=F("judged_from") - timedelta(days=1))
    check_workspaces()
    assert is_paused(newsletter)


def test_a_check_with_old_rates_does_not_pause_again(alice, newsletter, monkeypatch):
    count(alice.workspace, "newsletter", sent=10_000, complained=100)
    old = read_stream_rates()
    check_workspaces()
    resume_stream(alice.workspace, "newsletter")
    monkeypatch.setattr(services, "read_stream_rates", lambda: old)
    check_workspaces()
    assert not is_paused(newsletter)


def test_with_a_paused_stream_a_workspace_is_judged_from_the_day_after_its_suspension(alice, newsletter):
    count(alice.workspace, "newsletter", sent=10_000, complained=100)
    count(alice.workspace, sent=10_000, complained=100)
    check_workspaces()
    assert is_suspended(alice.workspace)
    lift_suspension(alice.workspace)
    assert read_rates() == []
    Workspace.objects.update(judged_from=F("judged_from") - timedelta(days=1))
    (rates,) = read_rates()
    assert (rates.sent, rates.counts[ReputationCounter.COMPLAINED]) == (10_000, 100)


def test_streams_of_a_suspended_workspace_and_old_emails_are_not_judged(alice, newsletter):
    count(alice.workspace, "newsletter", sent=10_000, complained=100, sent_at=timezone.now() - timedelta(days=8))
    assert read_stream_rates() == []
    count(alice.workspace, "newsletter", sent=10_000, complained=100)
    assert len(read_stream_rates()) == 1
    suspend_workspace(alice.workspace, reason="x")
    assert read_stream_rates() == []


def test_each_stream_is_judged_by_its_own_rate(alice, bob, newsletter):
    other = Stream.objects.create(workspace=alice.workspace, slug="offers", number=2, name="Offers", kind="bulk")
    theirs = Stream.objects.create(workspace=bob.workspace, slug="newsletter", number=1, name="News", kind="bulk")
    count(alice.workspace, "newsletter", sent=10_000, complained=100)
    count(alice.workspace, "offers", sent=10_000, complained=1)
    count(bob.workspace, "newsletter", sent=10_000, complained=1)
    check_workspaces()
    assert [is_paused(stream) for stream in (newsletter, other, theirs)] == [True, False, False]


def test_bounces_and_complaints_of_emails_are_counted_for_their_stream(api: Api, alice, newsletter, monkeypatch):
    monkeypatch.setattr("analytics.reputation.rates.MINIMUM_COUNTS", dict.fromkeys(ReputationCounter, 1))
    for number in range(3):
        send(api, stream="newsletter", to=f"a{number}@example.com")
        deliver(UNKNOWN_USER if number == 0 else OK)
    send(api)
    deliver(OK)
    recipient = api.get("/emails", {"stream": "newsletter"}).json()["data"][0]["id"]
    record_reports([ReportedEvent(Recipient.objects.get(email=recipient).id, EventKind.COMPLAINED)])
    (rates,) = read_stream_rates()
    assert (rates.stream, rates.sent, *rates.counts.values()) == ("newsletter", 3, 1, 1)
    (rates,) = read_rates()
    assert (rates.sent, *rates.counts.values()) == (4, 1, 1)
