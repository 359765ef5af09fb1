"""Resend's API: webhooks, and the events posted to them."""

import pytest

from tests.conftest import make_key
from tests.interfaces.compat.conftest import Dialect
from tests.interfaces.compat.test_resend import error
from tests.rows import each
from webhooks.models import Webhook, WebhookDelivery, WebhookSecret
from webhooks.services import send_test

pytestmark = pytest.mark.django_db

URL = "https://example.com/hook"


def create(resend: Dialect, *events: str) -> dict:
    response = resend.post("/webhooks", {"endpoint": URL, "events": events or ["email.sent"]})
    assert response.status_code == 201, response.content
    return response.json()


def test_a_created_webhook_has_resends_format_and_a_secret(resend):
    created = create(resend, "email.sent", "email.delivery_delayed", "email.scheduled", "contact.created")
    webhook = Webhook.objects.get()
    assert created == {"object": "webhook", "id": created["id"], "signing_secret": WebhookSecret.objects.get().secret()}
    assert (webhook.format, webhook.events, webhook.url) == ("resend", ["sent", "deferred"], URL)


def test_the_secret_is_not_read_again(resend):
    created = create(resend, "email.bounced", "email.failed", "suppression.added")
    read = resend.get(f"/webhooks/{created['id']}").json()
    assert (read["object"], read["endpoint"], read["status"], read["signing_secret"]) == ("webhook", URL, "enabled", "")
    assert sorted(read["events"]) == ["email.bounced", "email.failed", "email.suppressed", "suppression.added"]
    (listed,) = resend.get("/webhooks").json()["data"]
    assert listed == {name: read[name] for name in ("id", "endpoint", "events", "status", "created_at")}


def test_a_webhook_is_changed_disabled_and_deleted(resend):
    created = create(resend)
    answer = {"object": "webhook", "id": created["id"]}
    changes = {"endpoint": f"{URL}2", "events": ["email.opened"], "status": "disabled"}
    assert resend.call("PATCH", f"/webhooks/{created['id']}", changes).json() == answer
    webhook = Webhook.objects.get()
    assert (webhook.url, webhook.events, webhook.active) == (f"{URL}2", ["opened"], False)
    assert resend.call("PATCH", f"/webhooks/{created['id']}", {"status": "enabled"}).json() == answer
    assert Webhook.objects.get().active
    assert resend.call("DELETE", f"/webhooks/{created['id']}").json() == {**answer, "deleted": True}
    assert error(resend.get(f"/webhooks/{created['id']}")) == (404, "not_found")


def test_the_secret_is_rotated(resend):
    created = create(resend)
    rotated = resend.post(f"/webhooks/{created['id']}/signing-secret/rotate").json()
    assert (rotated["object"], rotated["id"]) == ("webhook", created["id"])
    assert rotated["signing_secret"] != created["signing_secret"]
    assert WebhookSecret.objects.valid().first().secret() == rotated["signing_secret"]


def test_events_are_listed_read_and_replayed(resend):
    created = create(resend, "email.bounced")
    delivery = send_test(Webhook.objects.get())
    WebhookDelivery.objects.update(
        status="exhausted",
        attempts=[
            {"at": "2026-11-21T06:20:00.412Z", "durationMs": 3, "statusCode": 500, "error": "status", "answer": "No"},
            {"at": "2026-11-21T06:21:00.412Z", "durationMs": 3, "statusCode": None, "error": "timeout", "answer": None},
        ],
    )
    path = f"/webhooks/{created['id']}/events"
    (event,) = resend.get(path).json()["data"]
    assert (event["type"], event["status"]) == ("email.bounced", "failed")
    read = resend.get(f"{path}/{delivery.event_id}").json()
    assert {name: read[name] for name in event} == event
    assert (read["object"], read["payload"]["type"]) == ("webhook_event", "email.bounced")
    assert read["payload"]["data"]["bounce"]["type"] == "Permanent"
    attempts = resend.get(f"{path}/{event['id']}/attempts").json()["data"]
    assert [(one["http_status_code"], one["response"]) for one in attempts] == [(500, "No"), (0, "timeout")]
    replayed = resend.post(f"{path}/{event['id']}/replay").json()
    assert replayed == {"object": "webhook_event", "id": event["id"]}
    assert resend.get(f"{path}/{event['id']}").json()["status"] == "pending"


@each(
    ("body", "name", "message"),
    [
        ({"events": ["email.sent"]}, "missing_required_field", "Missing `endpoint` field."),
        ({"endpoint": URL}, "missing_required_field", "Missing `events` field."),
        ({"endpoint": URL, "events": []}, "missing_required_field", "Missing `events` field."),
        ({"endpoint": URL, "events": ["email.delivred"]}, "validation_error", "Invalid `events[0]` field."),
        ({"endpoint": URL, "events": ["contact.created"]}, "validation_error", "Invalid `events` field."),
        ({"endpoint": URL, "events": "email.sent"}, "validation_error", "Invalid `events` field."),
        ({"endpoint": URL, "events": [7]}, "validation_error", "Invalid `events[0]` field."),
        ({"endpoint": "ftp://example.com", "events": ["email.sent"]}, "validation_error", "Invalid `endpoint` field."),
        ({"endpoint": "http://10.0.0.1/", "events": ["email.sent"]}, "validation_error", "Invalid `endpoint` field."),
    ],
)
def test_an_invalid_webhook_is_refused(resend, settings, body, name, message):
    settings.WEBHOOK_ALLOW_PRIVATE_NETWORKS = False
    response = resend.post("/webhooks", body)
    assert error(response) == (422, name)
    assert response.json()["message"].startswith(message)
    assert not Webhook.objects.exists()


def test_an_invalid_status_is_refused(resend):
    path = f"/webhooks/{create(resend)['id']}"
    for status in ("off", 7, []):
        response = resend.call("PATCH", path, {"status": status})
        assert error(response) == (422, "validation_error")
        assert response.json()["message"].startswith("Invalid `status` field.")


def test_an_event_of_another_webhook_is_not_found(resend, bob):
    create(Dialect("resend", make_key(bob.workspace)))
    delivery = send_test(Webhook.objects.get())
    own = create(resend)
    assert error(resend.get(f"/webhooks/{own['id']}/events/{delivery.event_id}")) == (404, "not_found")
