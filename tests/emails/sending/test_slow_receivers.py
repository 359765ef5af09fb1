"""Receivers that ask for less, in the queue (docs/decisions/0278)."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.db.models import F
from django.db.models.functions import Now

from delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply
from emails.models import QueueEntry, Recipient
from emails.sending.outcomes import SendResult, record_results
from emails.sending.scheduling import promote_due
from events.models import Event
from lib.worker.stages import Stage
from tests.conftest import make_domain
from tests.emails.builders import accept, claim_entries, deliver_all, event_kinds, make_ready

pytestmark = pytest.mark.django_db(transaction=True)

PAUSED = DeliveryOutcome(
    DeliveryStatus.PARKED,
    Reply(0, "The receiver asked for less email."),
    "rate_limited",
    retry_after=timedelta(minutes=20),
)
FULL = replace(PAUSED, reason="destination_full", retry_after=timedelta(0))


@pytest.fixture
def workspace(alice):
    make_domain(alice.workspace, "alice.example")
    return alice.workspace


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
