"""Simulated recipients, from the API to the last event."""

import asyncio
from datetime import UTC, datetime

import pytest

from analytics.outcomes import read_outcomes
from core.lib.worker.leases import Lease, boot_seconds
from core.lib.worker.stages import Stage
from emails.models import QueueEntry, Recipient
from emails.sending.emails_work import EmailQueueWork
from emails.sending.transports import configured_transport
from suppressions.models import Suppression
from tests.conftest import Api
from tests.emails.builders import send
from tests.rows import each

pytestmark = pytest.mark.django_db


def today_utc():
    return datetime.now(UTC).date()


@pytest.fixture
def run(settings):
    """Return a function that processes all due entries once."""
    settings.DELIVERY_TRANSPORT = "inbox"
    sending = EmailQueueWork(configured_transport(), sessions=20)

    def once() -> None:
        QueueEntry.objects.filter(stage=Stage.WAITING).update(stage=Stage.READY)
        for job in sending.claim(20).jobs:
            sending.record([asyncio.run(sending.perform(job, Lease(boot_seconds())))])

    return once


@each(("name", "status", "events"), [
    ("delivered", "delivered", ["queued", "sent", "delivered"]),
    ("bounced", "bounced", ["queued", "bounced"]),
    ("failed", "failed", ["queued", "failed"]),
    ("opened", "opened", ["queued", "sent", "delivered", "opened"]),
    ("clicked", "clicked", ["queued", "sent", "delivered", "opened", "clicked"]),
    ("complained", "delivered", ["queued", "sent", "delivered", "complained"]),
    ("unsubscribed", "delivered", ["queued", "sent", "delivered", "unsubscribed"]),
])  # fmt: skip
@each("label", ["", "+mine"])
def test_a_simulated_recipient_has_the_outcome_of_its_name(api: Api, run, name, status, events, label):
    email_id = send(api, to=f"{name}{label}@simulator.test")
    run()
    found = api.get(f"/emails/{email_id}").json()
    event_types = [event["eventType"] for event in api.get(f"/emails/{email_id}/events").json()["data"]]
    assert (found["status"], event_types) == (status, events)
    is_suppressed = bool(label) and name in {"bounced", "complained", "unsubscribed"}
    assert Suppression.objects.exists() is is_suppressed


def test_a_simulated_complaint_counts_in_statistics_and_not_in_rates(api: Api, run, alice):
    for name in ("complained", "delivered"):
        send(api, to=f"{name}@simulator.example")
    send(api, to="suppressed@resend.dev")
    run()
    (today,) = read_outcomes(alice.workspace, first=today_utc(), last=today_utc())
    assert (today.complained, today.rated) == (1, {"sent": 0, "bounced": 0, "complained": 0})
    assert today.outcomes["failed"] == 1
    assert api.get("/streams/main").json()["counts"]["complained"] == 1


def test_the_deferred_recipient_accepts_the_third_attempt(api: Api, run):
    email_id = send(api, to="deferred@simulator.test")
    for status in ("queued", "queued", "delivered"):
        run()
        assert api.get(f"/emails/{email_id}").json()["status"] == status
    assert Recipient.objects.get().attempts == 3
