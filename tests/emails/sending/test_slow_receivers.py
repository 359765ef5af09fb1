"""Receivers that ask for less, and block lists, from the queue to the staff (docs/decisions/0278)."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.core.management import call_command
from django.db.models import F
from django.db.models.functions import Now

from config.doctor.diagnosis import Verdict
from config.doctor.transports import check_states
from console.system_mail.models import SystemMail
from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply
from core.delivery.transports.transports_file import single_transport
from core.lib.worker.stages import Stage
from emails.models import Email, QueueEntry, Recipient, TransportUse
from emails.sending.outcomes import SendResult, record_results
from emails.sending.scheduling import promote_due
from emails.sending.transport_status import send_listings
from events.models import Event
from tests.emails.builders import accept, claim_entries, deliver_all, event_kinds, make_ready
from tests.emails.sending.test_transports import Worker, hosts, named, recipients  # noqa: F401 - fixtures

pytestmark = pytest.mark.django_db(transaction=True)

S3150 = "550 5.7.1 Messages from [192.0.2.1] weren't sent, part of their network is on our block list (S3150)."
PAUSED = DeliveryOutcome(
    DeliveryStatus.PARKED,
    Reply(0, "The receiver asked for less email."),
    "rate_limited",
    retry_after=timedelta(minutes=20),
)
FULL = replace(PAUSED, reason="destination_full", retry_after=timedelta(0))
LISTED = DeliveryOutcome(
    DeliveryStatus.DEFERRED,
    Reply(550, "5.7.1 on our block list (S3150)"),
    "blocklisted",
    retry_after=timedelta(hours=4),
    listed_by="Microsoft",
)


@pytest.fixture(autouse=True)
def _staff(alice):
    type(alice.owner).objects.filter(id=alice.owner.id).update(is_staff=True)


def waits():
    """Return the seconds until each entry is due, in order."""
    return sorted(wait.total_seconds() for wait in QueueEntry.objects.values_list(F("due_at") - Now(), flat=True))


class TestParking:
    def test_lasts_until_the_destination_takes_messages_again(self, workspace):
        accept(workspace, count=4)
        claims = claim_entries()
        outcomes = [FULL, PAUSED, FULL, replace(PAUSED, retry_after=timedelta(seconds=45))]
        record_results([SendResult(claim, outcome) for claim, outcome in zip(claims, outcomes, strict=True)])
        assert waits() == pytest.approx([2, 2, 45, 1200], abs=1.5)
        by_key = dict(QueueEntry.objects.values_list("recipient_id", "parked"))
        assert [by_key[claim.recipient_id] for claim in claims] == [1, 0, 1, 0]
        assert set(QueueEntry.objects.values_list("stage", "attempts")) == {(Stage.WAITING, 0)}
        assert not Event.objects.filter(kind="deferred").exists()

    def test_begins_again_with_two_seconds_after_a_pause(self, workspace):
        accept(workspace)
        for outcome in (FULL, FULL, PAUSED, FULL):
            make_ready()
            deliver_all(outcome)
        assert waits() == pytest.approx([2], abs=1.5)

    def test_ends_when_the_recipient_is_too_old(self, workspace, settings):
        settings.DELIVERY_MAX_AGE = 600
        accept(workspace)
        deliver_all(PAUSED)
        assert waits() == pytest.approx([600], abs=5)
        QueueEntry.objects.update(due_at=Now(), since=Now() - timedelta(seconds=601))
        promote_due()
        deliver_all(PAUSED)
        assert (Recipient.objects.get().state, event_kinds()[-1]) == ("failed", "failed")

    def test_keeps_the_transport_of_a_pinned_message(self, workspace):
        accept(workspace)
        QueueEntry.objects.update(handed_to="own")
        deliver_all(PAUSED)
        assert QueueEntry.objects.get().handed_to == "own"


class TestListing:
    def test_defers_the_email_for_four_hours_and_tells_the_staff_once(self, settings, hosts, workspace):  # noqa: F811
        settings.DELIVERY_TRANSPORT, settings.SMTP_URL = "smtp", f"smtp://127.0.0.1:{hosts['own'].port}?tls=none"
        settings.TRANSPORTS = single_transport("smtp")
        settings.DELIVERY_CONNECTIONS = 1
        hosts["own"].replies["mail"] = S3150
        accept(workspace, count=20)
        worker = Worker()
        statuses = [outcome.status for outcome in worker.send()]
        assert statuses.count(DeliveryStatus.DEFERRED) == 1
        assert statuses.count(DeliveryStatus.PARKED) == 19
        assert 4 * 3600 * 0.85 - 5 < waits()[-1] < 4 * 3600 * 1.15
        assert not Email.objects.filter(status="bounced").exists()
        # Those that found the connection in use come back at once, and then wait for half an hour.
        connections = hosts["own"].connections
        assert {outcome.status for outcome in worker.send()} == {DeliveryStatus.PARKED}
        assert hosts["own"].connections == connections
        assert sorted(QueueEntry.objects.values_list("attempts", flat=True)) == [0] * 19 + [1]
        assert waits() == pytest.approx([1810] * 20, abs=25)
        mail = SystemMail.objects.get()
        assert mail.subject == "The transport default is on a block list: Microsoft"
        assert "S3150" in mail.text

    def test_tries_the_next_transport_if_the_route_says_so(self, named, hosts, workspace):  # noqa: F811
        named(rest="routes: {default: {use: [own, relay], failoverOn: [blocklisted]}}")
        hosts["own"].replies["mail"] = S3150
        accept(workspace, count=3)
        worker = Worker()
        assert {outcome.status for outcome in worker.send()} == {DeliveryStatus.SENT}
        assert len(recipients(hosts)["relay"]) == 3
        assert SystemMail.objects.get().subject == "The transport own is on a block list: Microsoft"

    @pytest.mark.parametrize("is_tried", [True, False])
    def test_does_not_make_email_wait_for_another_transport(self, named, hosts, workspace, is_tried):  # noqa: F811
        named(rest="routes: {default: {use: [own, relay], failoverOn: [unreachable, blocklisted]}}")
        hosts["own"].replies["mail"] = S3150
        if is_tried:
            hosts["relay"].replies["mail"] = "421 4.3.2 Busy"
        else:
            call_command("transport", "drain", "relay")
        accept(workspace)
        Worker().send()
        assert QueueEntry.objects.get().attempts == 1
        assert waits()[0] < 120

    def test_is_told_once_a_day_for_each_list_and_transport(self, workspace):
        send_listings([LISTED, LISTED, replace(LISTED, listed_by="Spamhaus"), replace(LISTED, transport="own")])
        send_listings([LISTED])
        assert SystemMail.objects.count() == 3
        (row,) = TransportUse.objects.filter(name="own")
        assert list(row.listings) == ["Microsoft"]
        TransportUse.objects.update(listings={"Microsoft": "2026-01-01T00:00:00Z"})
        send_listings([LISTED])
        assert SystemMail.objects.count() == 4

    def test_is_a_warning_of_the_doctor_for_a_day(self, workspace):
        assert check_states(None).verdict == Verdict.OK
        send_listings([LISTED])
        diagnosis = check_states(None)
        assert "Microsoft (transport default)" in diagnosis.message
        TransportUse.objects.update(listings={"Microsoft": "2026-01-01T00:00:00Z"})
        assert check_states(None).verdict == Verdict.OK

    def test_is_final_only_when_the_recipient_is_too_old(self, workspace, settings):
        settings.DELIVERY_MAX_AGE = 3600 * 3
        accept(workspace)
        deliver_all(LISTED)
        assert Recipient.objects.get().state == "failed"
