"""Batches in SendGrid's API: emails that are cancelled, paused and resumed together."""

import time
import uuid

import pytest

from core.workspaces.key_limits import NO_LIMITS
from core.workspaces.quota import read_quota
from emails.accept.batches import create_batch
from emails.models import Email, EmailBatch, QueueEntry
from emails.sending.scheduling import promote_due
from emails.upkeep.retention import delete_empty_batches
from events.models import Event
from tests.conftest import make_key
from tests.interfaces.compat.conftest import Dialect
from tests.interfaces.compat.test_sendgrid import error, mail
from tests.rows import each

pytestmark = pytest.mark.django_db

SENDS = "/v3/user/scheduled_sends"


def in_an_hour() -> int:
    return int(time.time()) + 3600


@pytest.fixture
def batch_id(sendgrid) -> str:
    """Return a batch with two scheduled emails, one of them with two recipients."""
    created = sendgrid.post("/v3/mail/batch")
    assert created.status_code == 201
    given: str = created.json()["batch_id"]
    to = {"to": [{"email": "ada@example.com"}], "cc": [{"email": "bob@example.com"}]}
    for body in (mail(personalizations=[to]), mail("carol@example.com")):
        sent = sendgrid.post("/v3/mail/send", body | {"batch_id": given, "send_at": in_an_hour()})
        assert sent.status_code == 202
    return given


def make_due() -> None:
    """Move the time of the emails into the past, as if an hour had passed."""
    QueueEntry.objects.filter(due_at__year__lt=9999).update(due_at="2020-01-01T00:00:00Z")
    Email.objects.update(scheduled_for="2020-01-01T00:00:00Z")


def statuses() -> set[str]:
    return set(Email.objects.values_list("status", flat=True))


def test_a_batch_is_validated(sendgrid, batch_id):
    assert sendgrid.get(f"/v3/mail/batch/{batch_id}").json() == {"batch_id": batch_id}


def test_a_cancelled_batch_is_never_sent_and_its_quota_is_refunded(sendgrid, batch_id, alice):
    sent = sendgrid.post("/v3/mail/send", mail(send_at=in_an_hour()))
    assert sent.status_code == 202
    cancelled = sendgrid.post(SENDS, {"batch_id": batch_id, "status": "cancel"})
    assert (cancelled.status_code, cancelled.json()) == (201, {"batch_id": batch_id, "status": "cancel"})
    assert Email.objects.filter(status="cancelled", batch__isnull=False).count() == 2
    assert Event.objects.filter(kind="cancelled").count() == 2
    assert (QueueEntry.objects.count(), read_quota(alice.workspace).used) == (1, 1)
    assert sendgrid.get(SENDS).json() == sendgrid.get(f"{SENDS}/{batch_id}").json() == [cancelled.json()]
    assert sendgrid.call("DELETE", f"{SENDS}/{batch_id}").status_code == 204
    assert statuses() == {"cancelled", "scheduled"}


def test_a_paused_batch_is_sent_when_it_is_resumed(sendgrid, batch_id):
    assert sendgrid.post(SENDS, {"batch_id": batch_id, "status": "pause"}).json()["status"] == "pause"
    make_due()
    promote_due()
    assert statuses() == {"scheduled"}
    assert sendgrid.call("DELETE", f"{SENDS}/{batch_id}").status_code == 204
    assert sendgrid.get(SENDS).json() == []
    promote_due()
    assert statuses() == {"queued"}


def test_a_paused_batch_can_be_cancelled_and_not_the_other_way_round(sendgrid, batch_id):
    sendgrid.post(SENDS, {"batch_id": batch_id, "status": "pause"})
    assert sendgrid.call("PATCH", f"{SENDS}/{batch_id}", {"status": "cancel"}).status_code == 204
    assert statuses() == {"cancelled"}
    assert error(sendgrid.call("PATCH", f"{SENDS}/{batch_id}", {"status": "pause"})) == (400, "status")
    assert error(sendgrid.post(SENDS, {"batch_id": batch_id, "status": "cancel"})) == (400, "status")


def test_a_closed_batch_takes_no_more_emails(sendgrid, batch_id):
    sendgrid.post(SENDS, {"batch_id": batch_id, "status": "pause"})
    refused = sendgrid.post("/v3/mail/send", mail(batch_id=batch_id, send_at=in_an_hour()))
    assert error(refused) == (400, "batch_id")
    assert Email.objects.count() == 2


def test_a_batch_has_a_limit(sendgrid, batch_id, monkeypatch):
    monkeypatch.setattr("emails.accept.batches.MAX_EMAILS", 3)
    assert sendgrid.post("/v3/mail/send", mail(batch_id=batch_id)).status_code == 202
    assert error(sendgrid.post("/v3/mail/send", mail(batch_id=batch_id))) == (400, "batch_id")
    assert Email.objects.count() == 3


def test_emails_that_are_sent_immediately_are_not_held(sendgrid, batch_id):
    sendgrid.post("/v3/mail/send", mail(batch_id=batch_id))
    sendgrid.post(SENDS, {"batch_id": batch_id, "status": "cancel"})
    assert statuses() == {"cancelled", "queued"}


@each("given", ["x", 7, "bat_x", "0d648a7f-e035-485d-ba53-ecf8530679b7"])
def test_an_unknown_batch_is_refused(sendgrid, given):
    assert error(sendgrid.post("/v3/mail/send", mail(batch_id=given))) == (400, "batch_id")
    assert sendgrid.post(SENDS, {"batch_id": given, "status": "cancel"}).status_code in {400, 404}
    assert not Email.objects.exists()


def test_an_unknown_status_is_refused(sendgrid, batch_id):
    for status in (None, "stop", ["cancel"]):
        assert error(sendgrid.post(SENDS, {"batch_id": batch_id, "status": status})) == (400, "status")
    assert error(sendgrid.call("PATCH", f"{SENDS}/{batch_id}", {"status": "cancel"})) == (404, None)


def test_a_batch_of_another_workspace_cannot_be_cancelled(sendgrid, batch_id, bob):
    stranger = Dialect("sendgrid", make_key(bob.workspace))
    for client, given in ((stranger, batch_id), (sendgrid, str(uuid.UUID(int=0)))):
        assert error(client.post(SENDS, {"batch_id": given, "status": "cancel"})) == (404, None)
    assert statuses() == {"scheduled"}


def test_old_batches_without_emails_are_deleted(sendgrid, batch_id, alice):
    empty = create_batch(alice.workspace, limits=NO_LIMITS)
    assert list(delete_empty_batches()) == []
    EmailBatch.objects.update(created_at="2020-01-01T00:00:00Z")
    list(delete_empty_batches())
    assert not EmailBatch.objects.filter(id=empty.id)
    assert EmailBatch.objects.count() == 1
