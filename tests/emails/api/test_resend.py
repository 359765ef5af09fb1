"""`POST /v1/emails/:id/resend`: a new email with the same content, checked again."""

import pytest
from django.utils import timezone

from core.lib.worker.stages import Stage
from core.workspaces.models import Usage
from domains.models import Domain
from domains.services import sending_domain_cache
from emails.models import Attachment, Content, Email, QueueEntry, Recipient
from emails.states import EmailStatus
from events.models import Event
from tests.conftest import Api, code_of, field_codes, later, mail
from tests.emails.builders import BOUNCED, change_workspace, deliver_all, send
from tests.rows import each

pytestmark = pytest.mark.django_db

FULL = mail(
    to=["Ada L <ada@example.com>", "bob@example.com"],
    cc=["carol@example.com"],
    bcc=["dan@example.com"],
    replyTo="Help <help@alice.example>",
    text="Hi",
    tags=["a"],
    metadata={"order": 7},
    headers={"X-A": "b"},
    attachments=[{"filename": "a.txt", "content": "QQ=="}],
    trackOpens=False,
)
OWN = {"id", "status", "createdAt", "scheduledFor", "sentAt", "deliveredAt", "errorMessage", "retryCount", "recipients"}


def resend(api: Api, email_id: str, body=None, **headers):
    return api.post(f"/emails/{email_id}/resend", body, **headers)


@each("given", [None, {}, {"idempotencyKey": None}])
def test_a_copy_is_queued_with_a_new_id(api: Api, given):
    email_id = send(api)
    response = resend(api, email_id, given)
    body = response.json()
    assert (response.status_code, body.keys()) == (202, {"id", "status", "createdAt"})
    assert body["status"] == "queued"
    assert body["id"] != email_id
    assert Email.objects.count() == Usage.objects.get().used == 2
    assert list(Event.objects.filter(email=body["id"]).values_list("kind", flat=True)) == ["queued"]


def test_the_copy_has_the_same_content_and_recipients(api: Api):
    email_id = api.post("/emails/send", FULL).json()["id"]
    # A copy can be resent, too.
    copy_id = resend(api, resend(api, email_id).json()["id"]).json()["id"]
    first, copy = (api.get(f"/emails/{one}").json() for one in (email_id, copy_id))
    assert {name: copy[name] for name in copy.keys() - OWN} == {name: first[name] for name in first.keys() - OWN}
    assert [(one["email"], one["type"], one["status"]) for one in copy["recipients"]] == [
        ("ada@example.com", "to", "queued"),
        ("bob@example.com", "to", "queued"),
        ("carol@example.com", "cc", "queued"),
        ("dan@example.com", "bcc", "queued"),
    ]
    assert Email.objects.filter(track_opens=False, track_clicks=True).count() == 3
    assert Content.objects.count() == Attachment.objects.count() == 1


def test_the_copy_starts_with_a_fresh_status(api: Api):
    email_id = send(api)
    deliver_all(BOUNCED)
    before = api.get(f"/emails/{email_id}").json()
    copy = api.get(f"/emails/{resend(api, email_id).json()['id']}").json()
    assert (copy["status"], copy["errorMessage"], copy["sentAt"], copy["retryCount"]) == ("queued", None, None, 0)
    assert api.get(f"/emails/{email_id}").json() == before
    assert before["status"] == "bounced"


@each("state", EmailStatus.values)
def test_an_email_with_any_status_is_resent(api: Api, state):
    email_id = send(api)
    Email.objects.update(status=state)
    Recipient.objects.update(state=state)
    copy = resend(api, email_id).json()
    assert copy["status"] == "queued"
    assert set(Recipient.objects.filter(email=copy["id"]).values_list("state", flat=True)) == {"queued"}


def test_the_copy_of_a_scheduled_email_is_sent_immediately(api: Api):
    email_id = send(api, scheduledFor=later())
    copy = resend(api, email_id).json()
    assert copy["status"] == "queued"
    assert api.get(f"/emails/{copy['id']}").json()["scheduledFor"] is None
    assert QueueEntry.objects.filter(recipient__email=copy["id"]).get().stage == Stage.READY
    assert api.get(f"/emails/{email_id}").json()["status"] == "scheduled"


def test_suppression_is_checked_again(api: Api):
    email_id = send(api, to=["a@example.com"], cc=["b@example.com"])
    api.post("/suppressions", {"email": "B@example.com"})
    response = resend(api, email_id)
    assert code_of(response) == (422, "recipient_suppressed")
    (suppressed,) = response.json()["recipients"]
    assert (suppressed["email"], suppressed["reason"]) == ("b@example.com", "manual")
    assert Email.objects.count() == Usage.objects.get().used == 1


def test_the_domain_is_checked_again(api: Api):
    email_id = send(api)
    Domain.objects.all().delete()
    sending_domain_cache.clear()
    assert code_of(resend(api, email_id)) == (422, "domain_not_registered")
    assert Email.objects.count() == 1


def test_the_quota_is_checked_again(api: Api, alice):
    email_id = send(api)
    change_workspace(alice.workspace, plan="free")
    Usage.objects.update(used=500)
    assert code_of(resend(api, email_id, {"idempotencyKey": "k"})) == (429, "quota_exceeded")
    assert Email.objects.count() == 1
    Usage.objects.update(used=499)
    assert resend(api, email_id, {"idempotencyKey": "k"}).status_code == 202
    assert Usage.objects.get().used == 500


def test_a_suspended_workspace_resends_nothing(api: Api, alice):
    email_id = send(api)
    change_workspace(alice.workspace, suspended_at=timezone.now())
    assert code_of(resend(api, email_id)) == (403, "workspace_suspended")
    assert Email.objects.count() == 1


@each(("body", "field", "code"), [
    ({"scheduledFor": "2999-01-01T00:00:00Z"}, "scheduledFor", "unknown_field"),
    ({"to": "other@example.com"}, "to", "unknown_field"),
    ({"idempotencykey": "k"}, "idempotencykey", "unknown_field"),
    ({"idempotencyKey": ""}, "idempotencyKey", "blank"),
    ({"idempotencyKey": 7}, "idempotencyKey", "invalid"),
    ({"idempotencyKey": "k" * 256}, "idempotencyKey", "max_length"),
])  # fmt: skip
def test_a_field_that_would_be_ignored_is_refused(api: Api, body, field, code):
    email_id = send(api)
    assert field_codes(resend(api, email_id, body)) == {field: code}
    assert Email.objects.count() == 1


@each("form", ["field", "header"])
def test_a_repeat_gets_the_first_response(api: Api, form):
    email_id = send(api)
    body, headers = ({"idempotencyKey": "k"}, {}) if form == "field" else (None, {"Idempotency_Key": "k"})
    first, again = (resend(api, email_id, body, **headers) for _ in range(2))
    assert (again.status_code, again.json()) == (202, first.json())
    assert again["Idempotent-Replayed"] == "true"
    assert "Idempotency-Body-Mismatch" not in again
    assert Email.objects.count() == Usage.objects.get().used == 2


def test_a_key_used_for_one_email_is_refused_for_another(api: Api):
    one, other = send(api), send(api)
    first = resend(api, one, {"idempotencyKey": "k"})
    replayed = resend(api, other, {"idempotencyKey": "k"})
    assert (replayed.json(), replayed["Idempotency-Body-Mismatch"]) == (first.json(), "true")
    assert code_of(resend(api, other, Idempotency_Key="k")) == (409, "idempotency_key_reuse")
    assert Email.objects.count() == 3
