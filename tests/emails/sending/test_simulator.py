"""Simulated recipients, from the API to their last event."""

import asyncio

import pytest

from emails.models import Pending, Recipient
from emails.sending.sending import Sending
from emails.sending.transports import chosen_transport
from lib.worker.leases import Lease, boot_seconds
from suppressions.models import Suppression
from tests.conftest import Api, mail

pytestmark = pytest.mark.django_db


@pytest.fixture
def run(settings):
    """Send everything that is due, once."""
    settings.DELIVERY_TRANSPORT = "inbox"
    sending = Sending(chosen_transport(), sessions=20)

    def once() -> None:
        Pending.objects.filter(stage=Pending.Stage.WAITING).update(stage=Pending.Stage.READY)
        for parcel in sending.claim(20):
            sending.record([asyncio.run(sending.perform(parcel, Lease(boot_seconds())))])

    return once


@pytest.mark.parametrize(
    ("name", "status", "events"),
    [
        ("delivered", "delivered", ["queued", "sent", "delivered"]),
        ("bounced", "bounced", ["queued", "bounced"]),
        ("failed", "failed", ["queued", "failed"]),
        ("opened", "opened", ["queued", "sent", "delivered", "opened"]),
        ("clicked", "clicked", ["queued", "sent", "delivered", "opened", "clicked"]),
        ("complained", "delivered", ["queued", "sent", "delivered", "complained"]),
        ("unsubscribed", "delivered", ["queued", "sent", "delivered", "unsubscribed"]),
    ],
)
@pytest.mark.parametrize("label", ["", "+mine"])
def test_a_simulated_recipient_lives_as_its_name_says(api: Api, run, name, status, events, label):
    email_id = api.post("/emails/send", mail(to=f"{name}{label}@simulator.test")).json()["id"]
    run()
    found = api.get(f"/emails/{email_id}").json()
    told = [event["eventType"] for event in api.get(f"/emails/{email_id}/events").json()["data"]]
    assert (found["status"], told) == (status, events)
    is_suppressed = bool(label) and name in {"bounced", "complained", "unsubscribed"}
    assert Suppression.objects.exists() is is_suppressed


def test_the_deferred_one_takes_it_on_the_third_attempt(api: Api, run):
    email_id = api.post("/emails/send", mail(to="deferred@simulator.test")).json()["id"]
    for status in ("queued", "queued", "delivered"):
        run()
        assert api.get(f"/emails/{email_id}").json()["status"] == status
    assert Recipient.objects.get().attempts == 3
