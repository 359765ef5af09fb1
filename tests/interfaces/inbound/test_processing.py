"""Stored reports are processed until they are settled, despite errors."""

from datetime import timedelta

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from emails.models import Email, Recipient
from events.models import Event
from interfaces.inbound import matching, processing, queue
from interfaces.inbound.models import MailReport, ProviderReport
from interfaces.inbound.processing import process_reports, purge_reports
from suppressions.models import Suppression
from tests.interfaces.inbound.dsns import dsn
from tests.interfaces.inbound.fixtures import sent_recipient
from tests.plans import plan_of, prefer_indexes
from tests.rows import each

pytestmark = pytest.mark.django_db


def stored(recipient, source=None, **fields) -> MailReport:
    return MailReport.objects.create(
        recipient_id=recipient.id,
        sender="",
        peer="192.0.2.1",
        source=dsn(recipient.address) if source is None else source,
        **fields,
    )


def processed(recipient, source=None) -> MailReport:
    """Store a report, process it, and return it."""
    row = stored(recipient, source)
    process_reports()
    row.refresh_from_db()
    return row


def due_again():
    MailReport.objects.update(due_at=timezone.now() - timedelta(seconds=1))


def test_a_report_that_the_inbound_server_left_unprocessed_is_processed(workspace):
    recipient = sent_recipient(workspace)
    row = processed(recipient)
    assert (row.verdict, row.attempts) == ("recorded", 1)
    assert row.processed_at is not None
    process_reports()
    assert processed(recipient).verdict == "repeated"
    assert Event.objects.filter(kind="bounced").count() == 1


def test_a_row_is_tried_again_after_a_database_error(workspace, monkeypatch):
    row = stored(sent_recipient(workspace))

    def crash(*_):
        raise OperationalError("the connection is closed")

    with monkeypatch.context() as patch:
        patch.setattr(processing, "record_reports", crash)
        with pytest.raises(OperationalError):
            process_reports()
    row.refresh_from_db()
    assert (row.verdict, row.processed_at, row.attempts) == ("", None, 1)
    process_reports()
    row.refresh_from_db()
    # The first try did not count.
    assert (row.verdict, row.attempts) == ("recorded", 1)


def test_a_row_that_breaks_processing_is_given_up_and_affects_no_other(workspace, monkeypatch):
    bad, good = stored(sent_recipient(workspace), b"POISON"), stored(sent_recipient(workspace, "grace@example.com"))
    original = matching.read_mail_report

    def read(row):
        if bytes(row.source) == b"POISON":
            raise RuntimeError("an unforeseen byte")
        return original(row)

    monkeypatch.setattr(matching, "read_mail_report", read)
    for _ in range(queue.MAX_ATTEMPTS + 1):
        process_reports()
        due_again()
    bad.refresh_from_db()
    good.refresh_from_db()
    assert (bad.verdict, good.verdict) == ("poison", "recorded")
    assert good.attempts == 1


def test_rows_that_were_claimed_and_not_settled_are_claimed_alone(workspace):
    for number in range(3):
        stored(sent_recipient(workspace, f"a{number}@example.com"))
    assert len(queue.claim(MailReport)) == 3
    assert queue.claim(MailReport) == []
    due_again()
    assert len(queue.claim(MailReport)) == 1


def test_a_recipient_that_retention_deleted_leaves_only_the_row(workspace):
    recipient = sent_recipient(workspace)
    row = stored(recipient)
    Email.objects.all().delete()
    process_reports()
    row.refresh_from_db()
    assert row.verdict == "not_ours"
    assert not Event.objects.exists()


@each(("source", "verdict", "state"), [
    (dsn(action="delayed", status="4.4.1", code="451"), "recorded", "sent"),
    (dsn(action="relayed", status="2.1.9", code="250"), "says_nothing", "sent"),
    (dsn(action="expanded", status="2.1.9", code="250"), "says_nothing", "sent"),
    (dsn(action="delivered", status="2.1.5", code="250"), "recorded", "delivered"),
    (dsn(action="failed", status="4.4.7", code="451", text="message expired"), "recorded", "failed"),
    (dsn("grace@example.com"), "somebody_else", "sent"),
    (dsn("ada@new-home.example", extra="Original-Recipient: rfc822;Ada@Example.com\n"), "recorded", "bounced"),
    (b"Subject: Out of office\r\nAuto-Submitted: auto-replied\r\n\r\nI am away.\r\n", "says_nothing", "sent"),
    (b"Subject: Re: Hello\r\nFrom: ada@example.com\r\n\r\nThanks!\r\n", "says_nothing", "sent"),
    (b"", "says_nothing", "sent"),
])  # fmt: skip
def test_the_kind_of_a_message_decides_its_outcome(workspace, source, verdict, state):
    row = processed(sent_recipient(workspace), source)
    assert (row.verdict, Recipient.objects.get().state) == (verdict, state)


FORWARDED = """From: Mail Delivery System <Mailer-Daemon@mx.example.com>
Subject: Mail delivery failed: returning message to sender

The following address(es) failed:

  ada.new@example.net{origin}
    host mx.example.net [192.0.2.25]: 550 5.1.1 User unknown

------ This is a copy of the message, including all the headers. ------

To: ada@example.com
"""


@each(("origin", "verdict", "state"), [
    ("\n    (ultimately generated from ada@example.com)", "recorded", "bounced"),
    ("\n    (ultimately generated from grace@example.com)", "somebody_else", "sent"),
    # The returned message always names the recipient, so it does not count.
    ("", "somebody_else", "sent"),
])  # fmt: skip
def test_a_forwarders_report_is_recorded_when_it_names_the_original_address(workspace, origin, verdict, state):
    row = processed(sent_recipient(workspace), FORWARDED.format(origin=origin).encode())
    assert (row.verdict, Recipient.objects.get().state) == (verdict, state)


@each(
    ("address", "text", "reason"),
    [
        ("ada@example.com", "User unknown", "unknown_user"),
        ("ada@example.com", "User hi@alice.example unknown", "policy"),
        ("ada@example.com", "mail.alice.example: unknown user", "policy"),
        ("ada@example.com", "bounce.localhost: host unknown", "policy"),
        ("ada@example.com", "Host mx9.host.example unknown", "policy"),
        ("ada@example.com", "User unknown, see https://mx.example.com/?from=alice.example", "unknown_user"),
        ("ada@example.com", "malice.example: unknown user", "unknown_user"),
        ("ada@alice.example", "User ada@alice.example unknown", "unknown_user"),
    ],
)
def test_a_report_that_names_the_sender_does_not_suppress(workspace, settings, address, text, reason):
    settings.EHLO_NAME = "mx9.host.example"
    processed(sent_recipient(workspace, address), dsn(address, text=text))
    assert Event.objects.get(kind="bounced").payload["reason"] == reason
    assert Suppression.objects.exists() is (reason == "unknown_user")


def test_a_line_of_the_notice_that_names_the_sender_does_not_suppress(workspace):
    """The fields give no reason, so the notice beside them does; its line is the message of the event."""
    line = "hi@alice.example: unknown user"
    source = dsn(status="5.0.0").replace(b"Diagnostic-Code: smtp; 550 5.0.0 <ada@example.com>: No such user\r\n", b"")
    assert b"Diagnostic-Code" not in source
    source = source.replace(b"This is the mail system at host mx.example.com.", line.encode())
    processed(sent_recipient(workspace), source)
    assert Event.objects.get(kind="bounced").payload["message"] == line
    assert not Suppression.objects.exists()


def test_a_delay_is_recorded_without_changing_the_email(workspace):
    processed(sent_recipient(workspace), dsn(action="delayed", status="4.4.1", code="451", text="Connection timed out"))
    event = Event.objects.exclude(email=None).last()
    assert (event.kind, event.payload["enhancedCode"], event.payload["reason"]) == ("deferred", "4.4.1", "network")
    assert Email.objects.get().error_message is None


def test_a_hostile_diagnostic_text_is_escaped_and_cut(workspace):
    processed(sent_recipient(workspace), dsn(text="a\0b\x1b[31m<script>" + "x" * 5_000))
    message = Event.objects.exclude(email=None).last().payload["message"]
    assert "\0" not in message
    assert "\x1b" not in message
    assert len(message) < 1_100


def test_reports_settled_before_the_retention_period_are_deleted(workspace):
    row, fresh = stored(sent_recipient(workspace)), stored(sent_recipient(workspace, "grace@example.com"))
    process_reports()
    MailReport.objects.filter(number=row.number).update(processed_at=timezone.now() - timedelta(days=31))
    purge_reports()
    assert list(MailReport.objects.values_list("number", flat=True)) == [fresh.number]


def test_claim_and_purge_use_their_indexes(db):
    prefer_indexes()
    for kind in (MailReport, ProviderReport):
        with CaptureQueriesContext(connection) as queries:
            queue.claim(kind)
            queue.purge(kind)
        assert len(queries) == 3
        plans = [plan_of(query["sql"]) for query in queries.captured_queries]
        assert all(f"{kind._meta.model_name}_" in plan for plan in plans), plans
