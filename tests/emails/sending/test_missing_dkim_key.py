"""Missing DKIM key: emails of the domain wait for the key and are not lost."""

from datetime import timedelta

import pytest
from django.db.models import F

from core.lib.worker.stages import Stage
from domains.models import DkimKey
from emails.models import Email, QueueEntry, Recipient
from emails.sending.emails_work import EmailQueueWork
from events.kinds import EventKind
from events.models import Event
from tests.conftest import Api, mail
from tests.emails.builders import make_ready

pytestmark = pytest.mark.django_db


@pytest.fixture
def original_seal(api: Api, alice) -> str:
    """Send an email from a domain whose key is sealed with an unknown APP_KEYS entry; return the original seal."""
    key = DkimKey.objects.get(domain__workspace=alice.workspace)
    assert api.post("/emails/send", mail()).status_code == 202
    DkimKey.objects.filter(id=key.id).update(sealed_private_key=f"gone.{key.sealed_private_key.partition('.')[2]}")
    return str(key.sealed_private_key)


def test_an_email_without_a_key_waits_without_using_an_attempt(original_seal: str, sending: EmailQueueWork):
    for _ in range(5):
        make_ready()
        assert sending.claim(10).jobs == []
    assert QueueEntry.objects.get().stage == Stage.WAITING
    assert Recipient.objects.get().attempts == 0
    assert Email.objects.get().status == "queued"

    DkimKey.objects.update(sealed_private_key=original_seal)
    make_ready()
    (job,) = sending.claim(10).jobs
    assert job.identity.key


def test_an_email_without_a_key_fails_after_the_maximum_age(original_seal: str, sending: EmailQueueWork):
    QueueEntry.objects.update(since=F("since") - timedelta(days=8))
    assert sending.claim(10).jobs == []
    assert not QueueEntry.objects.exists()
    assert Email.objects.get().status == "failed"
    event = Event.objects.get(kind=EventKind.FAILED)
    assert event.payload["reason"] == "signing_key_unreadable"
