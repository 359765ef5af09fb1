"""Publishing: events of the feed are rendered once, and each subscribed endpoint gets a delivery."""

import json

import pytest
from django.contrib.postgres.functions import TransactionNow
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply
from core.lib.ids import new_id
from emails.models import Email
from emails.sending.outgoing_messages import rebuild_message
from events.kinds import WEBHOOK_KINDS, EventKind
from events.models import Event
from events.recording import NewEvent, record_events
from events.rendering import RenderedEvent
from events.sequencer import lift_positions, sequence_events
from tests.conftest import Api, later
from tests.emails.builders import LATER, deliver_all, send
from tests.events.feed import publish_committed
from tests.webhooks.conftest import make_endpoint, pass_time
from tests.webhooks.receiver import status
from webhooks.models import FeedCursor, Webhook, WebhookDelivery, WebhookEvent
from webhooks.publishing import insert_deliveries, publish_events

pytestmark = pytest.mark.django_db

NEVER = DeliveryOutcome(DeliveryStatus.BOUNCED, Reply(550, "5.1.1 no such user"), "unknown_user")


def bodies() -> dict[str, dict]:
    publish_committed()
    return {body["event"]: body for body in map(json.loads, WebhookEvent.objects.values_list("body", flat=True))}


def timeline(api: Api, email_id: str) -> dict[str, bool]:
    events = api.get(f"/emails/{email_id}/events").json()["data"]
    return {event["eventType"]: event["sentToWebhook"] for event in events}


def test_a_bounce_has_the_email_and_the_payload_of_the_timeline(api: Api, alice, receiver):
    make_endpoint(alice, receiver.url(), events=WEBHOOK_KINDS)
    email_id = send(api, tags=["a", "b"], metadata={"order": {"id": 7}}, subject="Grüße ✉")
    deliver_all(NEVER)
    event = Event.objects.get(kind="bounced")
    body = bodies()["bounced"]
    assert body == {
        "id": event.id,
        "type": "email.bounced",
        "event": "bounced",
        "createdAt": event.created_at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "data": {
            "emailId": email_id,
            "messageId": f"<{event.recipient_id}@alice.example>",
            "to": "ada@example.com",
            "from": "Alice <hi@alice.example>",
            "subject": "Grüße ✉",
            "status": "bounced",
            "tags": ["a", "b"],
            "metadata": {"order": {"id": 7}},
            "code": 550,
            "enhancedCode": "5.1.1",
            "message": "5.1.1 no such user",
            "reason": "unknown_user",
        },
    }
    assert list(body) == ["id", "type", "event", "createdAt", "data"]


def test_a_body_is_kept_as_it_was_written(alice, receiver):
    """PostgreSQL reads it as a part of the statement's JSON, and must change no character."""
    webhook = make_endpoint(alice, receiver.url(), events=WEBHOOK_KINDS).webhook
    odd = {"b": '\\ " / \n \u2028 ✉ 🎉 \x1b \\u0041', "a": [1.0, 1e22, -0.0, None, True, {}, []], "b ": {"b": " , "}}
    event = RenderedEvent(new_id("evt_"), alice.workspace.id, "delivered", timezone.now(), {"metadata": odd})
    insert_deliveries([(event, webhook.id)])
    body = WebhookEvent.objects.get().body
    assert body == json.dumps(event.body(), ensure_ascii=False, separators=(",", ":"))
    assert json.loads(body)["data"]["metadata"] == odd


def test_each_recipient_gets_a_separate_event(api: Api, alice, receiver):
    make_endpoint(alice, receiver.url(), events=("delivered",))
    send(api, to=["a@example.com", "b@example.com"], bcc=["c@example.com"])
    deliver_all()
    publish_committed()
    recipients = [json.loads(body)["data"]["to"] for body in WebhookEvent.objects.values_list("body", flat=True)]
    assert sorted(recipients) == ["a@example.com", "b@example.com", "c@example.com"]
    assert WebhookDelivery.objects.count() == 3


def test_a_deferral_is_published_and_events_without_a_type_are_not(api: Api, alice, receiver):
    make_endpoint(alice, receiver.url(), events=WEBHOOK_KINDS)
    email_id = send(api, scheduledFor=later())
    api.delete(f"/emails/{email_id}")
    assert bodies().keys() == {"scheduled"}
    send(api)
    deliver_all(LATER)
    assert bodies().keys() == {"scheduled", "deferred"}
    assert bodies()["deferred"]["data"]["status"] == "queued"


def test_a_click_has_the_url_of_the_link(api: Api, alice, receiver):
    make_endpoint(alice, receiver.url(), events=("clicked",))
    email = Email.objects.get(id=send(api))
    recipient = email.recipients.get()
    details = {"url": "https://example.com/?a=1&b=ü", "machine": False}
    record_events([NewEvent(EventKind.CLICKED, email.id, recipient.id, recipient.address, details)])
    data = bodies()["clicked"]["data"]
    assert (data["url"], data["machine"], data["to"]) == ("https://example.com/?a=1&b=ü", False, "ada@example.com")
    assert f"Message-ID: {data['messageId']}\r\n".encode() in rebuild_message(recipient)


def test_an_event_of_the_whole_email_names_all_its_addressees(api: Api, alice, receiver):
    make_endpoint(alice, receiver.url(), events=("failed",))
    email_id = send(api, to=["a@example.com", "b@example.com"])
    record_events([NewEvent(EventKind.FAILED, email_id)])
    data = bodies()["failed"]["data"]
    assert (data["to"], data["status"]) == ("a@example.com, b@example.com", "queued")


def test_nothing_is_written_without_active_subscribers(api: Api, bob, alice, receiver):
    make_endpoint(bob, receiver.url(), events=WEBHOOK_KINDS)
    disabled = make_endpoint(alice, receiver.url(), events=WEBHOOK_KINDS)
    Webhook.objects.filter(id=disabled.webhook.id).update(active=False)
    send(api)
    deliver_all()
    publish_committed()
    assert not WebhookEvent.objects.exists()


def test_a_webhook_that_was_just_created_gets_the_next_event(api: Api, receiver):
    send(api)
    deliver_all()
    publish_committed()
    api.post("/webhooks", {"url": receiver.url(), "events": ["delivered"]})
    send(api)
    deliver_all()
    publish_committed()
    assert WebhookDelivery.objects.count() == 1


def test_events_and_deliveries_are_rolled_back_together(api: Api, alice, receiver):
    from django.db import transaction

    make_endpoint(alice, receiver.url(), events=WEBHOOK_KINDS)
    send(api)
    before = Event.objects.count()

    def fail() -> None:
        with transaction.atomic():
            deliver_all()
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert Event.objects.count() == before
    publish_committed()
    assert not WebhookEvent.objects.exists()


def test_a_batch_is_published_in_a_fixed_number_of_statements(api: Api, alice, receiver):
    make_endpoint(alice, receiver.url(), events=WEBHOOK_KINDS)
    make_endpoint(alice, receiver.url("/2"), events=WEBHOOK_KINDS)
    for _ in range(30):
        send(api)
    deliver_all()
    Webhook.objects.update(created_at=TransactionNow())
    sequence_events()
    # Tests that commit leave a database without it.
    FeedCursor.objects.get_or_create(id=1)
    with CaptureQueriesContext(connection) as queries:
        publish_events()
    assert len(queries) <= 13, [query["sql"][:100] for query in queries.captured_queries]
    assert WebhookDelivery.objects.count() == 120


def test_the_timeline_shows_whether_an_endpoint_accepted_the_event(api: Api, alice, receiver, process_queue):
    make_endpoint(alice, receiver.url("/bad"), events=("sent", "delivered"))
    make_endpoint(alice, receiver.url("/good"), events=("delivered",))
    receiver.answers["/bad"] = status(500)
    receiver.answers["/good"] = status(503)
    email_id = send(api)
    deliver_all()
    process_queue()
    assert timeline(api, email_id) == {"queued": False, "sent": False, "delivered": False}
    receiver.answers["/good"] = status(200)
    pass_time(minutes=1)
    process_queue()
    assert timeline(api, email_id) == {"queued": False, "sent": False, "delivered": True}


def test_an_accepted_event_stays_accepted(api: Api, alice, receiver, process_queue):
    endpoint = make_endpoint(alice, receiver.url(), events=("delivered",))
    email_id = send(api)
    deliver_all()
    process_queue()
    delivery = WebhookDelivery.objects.get()
    api.post(f"/webhooks/{endpoint.webhook.id}/deliveries/{delivery.id}/replay")
    assert timeline(api, email_id)["delivered"] is True
    api.delete(f"/webhooks/{endpoint.webhook.id}")
    assert timeline(api, email_id)["delivered"] is True


def test_a_timeline_takes_one_query(api: Api, alice, receiver, django_assert_max_num_queries):
    make_endpoint(alice, receiver.url(), events=WEBHOOK_KINDS)
    email_id = send(api, to=[f"r{number}@example.com" for number in range(30)])
    deliver_all()
    api.get("/me")
    with django_assert_max_num_queries(2):
        assert len(api.get(f"/emails/{email_id}/events").json()["data"]) == 61


def test_publishing_continues_after_positions_were_lifted(api: Api, alice, receiver, monkeypatch):
    monkeypatch.setattr("webhooks.publishing.BATCH", 2)
    make_endpoint(alice, receiver.url(), events=["sent"])
    first = [send(api) for _ in range(3)]
    deliver_all()
    sequence_events()
    lift_positions()
    last = [send(api) for _ in range(3)]
    deliver_all()
    publish_committed()
    published = [json.loads(body)["data"]["emailId"] for body in WebhookEvent.objects.values_list("body", flat=True)]
    assert sorted(published) == sorted([*first, *last])
