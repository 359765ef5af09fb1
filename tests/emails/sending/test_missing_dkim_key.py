"""Without the key of its domain no mail leaves, and none is lost: it waits for the key."""

from datetime import timedelta

import pytest
from django.db.models import F

from delivery.transports.relay import inbox_transport
from domains.models import DkimKey
from emails.models import Email, Event, Pending, Recipient
from emails.sending.sending import Sending
from tests.conftest import Api, mail

pytestmark = pytest.mark.django_db


@pytest.fixture
def sending() -> Sending:
    """A worker's claims; nothing is handed over here."""
    return Sending(inbox_transport(port=1, ehlo_name="localhost"), sessions=10)


@pytest.fixture
def sealed(api: Api, alice) -> str:
    """Send an email whose domain's key is sealed by an entry that APP_KEYS lacks; return the seal as it was."""
    key = DkimKey.objects.get(domain__workspace=alice.workspace)
    assert api.post("/emails/send", mail()).status_code == 202
    DkimKey.objects.filter(id=key.id).update(sealed_private_key=f"gone.{key.sealed_private_key.partition('.')[2]}")
    return str(key.sealed_private_key)


def test_it_waits_without_using_an_attempt_and_leaves_when_the_key_is_back(sealed: str, sending: Sending):
    for _ in range(5):
        Pending.objects.update(stage=Pending.Stage.READY)
        assert sending.claim(10) == []
    assert Pending.objects.get().stage == Pending.Stage.WAITING
    assert Recipient.objects.get().attempts == 0
    assert Email.objects.get().status == "queued"

    DkimKey.objects.update(sealed_private_key=sealed)
    Pending.objects.update(stage=Pending.Stage.READY)
    (parcel,) = sending.claim(10)
    assert parcel.identity.key


def test_it_does_not_wait_for_ever(sealed: str, sending: Sending):
    Pending.objects.update(since=F("since") - timedelta(days=8))
    assert sending.claim(10) == []
    assert not Pending.objects.exists()
    assert Email.objects.get().status == "failed"
    event = Event.objects.get(kind=Event.Kind.FAILED)
    assert event.payload["reason"] == "signing_key_unreadable"
