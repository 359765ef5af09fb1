"""Simulated recipients, from the API to the last event."""

import asyncio

import pytest

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


def test_the_deferred_recipient_accepts_the_third_attempt(api: Api, run):
    email_id = send(api, to="deferred@simulator.test")
    for status in ("queued", "queued", "delivered"):
        run()
        assert api.get(f"/emails/{email_id}").json()["status"] == status
    assert Recipient.objects.get().attempts == 3
