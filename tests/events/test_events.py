"""`GET /v1/events`: all events of a workspace, in order, from a cursor."""

from dataclasses import replace
from datetime import timedelta

import pytest
from django.db.models.functions import Now
from rest_framework.test import APIRequestFactory

from domains.check_queue.claims import claim_due_checks, record_check
from domains.models import Domain
from domains.record_checks.results import RecordCheck, RecordStatus, VerificationResult
from emails.sending.emails_work import EmailQueueWork
from events.api.views import EventStreamView
from events.models import Event, FeedEntry
from events.tasks import delete_expired
from suppressions.services import suppress_address
from tests.conftest import Api, field_codes, later
from tests.emails.builders import BOUNCED, deliver_all, send
from tests.erasing import erase_person
from tests.events.feed import kinds_of, publish_committed, read_all
from tests.rows import each
from tests.webhooks.conftest import make_endpoint
from webhooks.models import WebhookDelivery, WebhookEvent

pytestmark = pytest.mark.django_db

URL = "http://127.0.0.1:9/hook"
VALID, MISSING = RecordCheck(RecordStatus.VALID), RecordCheck(RecordStatus.MISSING)


def check_domain(domain: Domain, record: RecordCheck) -> None:
    Domain.objects.filter(id=domain.id).update(check_due_at=Now(), missing_since=Now() - timedelta(days=9), absences=9)
    (claim,) = claim_due_checks(10)
    record_check(claim, VerificationResult({"pr1": record}, record, record, record, record))


def test_events_have_the_members_of_a_webhook_body(api: Api):
    email_id = send(api, tags=["a"], metadata={"order": 7})
    deliver_all(BOUNCED)
    (queued, bounced), _ = read_all(api)
    assert "messageId" not in queued["data"]
    event = Event.objects.get(kind="bounced")
    assert (queued["event"], queued["type"]) == ("queued", "email.queued")
    assert bounced == {
        "id": event.id,
        "type": "email.bounced",
        "event": "bounced",
        "createdAt": event.created_at.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        "cursor": bounced["cursor"],
        "data": {
            "emailId": email_id,
            "messageId": f"<{event.recipient_id}@alice.example>",
            "to": "ada@example.com",
            "from": "Alice <hi@alice.example>",
            "subject": "Hello",
            "status": "bounced",
            "tags": ["a"],
            "metadata": {"order": 7},
            "code": 550,
            "enhancedCode": "5.1.1",
            "message": "5.1.1 no such user",
            "reason": "rejected",
        },
    }


@each("limit", [1, 2, 500])
def test_pages_of_any_size_return_every_event_once_and_in_order(api: Api, limit):
    for _ in range(3):
        send(api, to=["a@example.com", "b@example.com"])
    deliver_all()
    events, cursor = read_all(api, limit=limit)
    assert [event["id"] for event in events] == list(Event.objects.order_by("number").values_list("id", flat=True))
    assert read_all(api, after=cursor) == ([], cursor)
    send(api)
    assert kinds_of(read_all(api, after=cursor)[0]) == ["queued"]


def test_each_event_has_a_cursor_to_continue_behind_it(api: Api):
    send(api)
    deliver_all()
    events, _ = read_all(api)
    assert kinds_of(events) == ["queued", "sent", "delivered"]
    for number, event in enumerate(events, 1):
        assert read_all(api, after=event["cursor"])[0] == events[number:]


def test_types_select_events_with_or_without_their_prefix(api: Api):
    send(api)
    deliver_all()
    assert kinds_of(read_all(api, types="email.sent,queued")[0]) == ["queued", "sent"]
    assert kinds_of(read_all(api, types="domain.verified")[0]) == []
    assert kinds_of(read_all(api, types="")[0]) == ["queued", "sent", "delivered"]
    response = api.get("/events", {"types": "sent,spam"})
    assert field_codes(response) == {"types": "unknown"}
    assert "complained" in response.json()["detail"]


def test_a_page_without_matching_events_still_moves_the_cursor(api: Api, monkeypatch):
    monkeypatch.setattr("events.feed.MAX_SCANNED", 2)
    send(api)
    deliver_all()
    suppress_address(Domain.objects.get().workspace, address="x@example.com", reason="manual")
    read_all(api)
    page = api.get("/events", {"types": "suppression.added"}).json()
    assert (page["data"], page["hasMore"]) == ([], True)
    assert kinds_of(read_all(api, types="suppression.added")[0]) == ["suppression.added"]


def test_latest_skips_all_events_until_now(api: Api):
    send(api)
    read_all(api)
    page = api.get("/events", {"after": "latest"}).json()
    assert (page["data"], page["hasMore"]) == ([], False)
    deliver_all()
    assert kinds_of(read_all(api, after=page["cursor"])[0]) == ["sent", "delivered"]


@each("limit", ["0", "-1", "x"])
def test_an_invalid_limit_is_refused(api: Api, limit):
    assert api.get("/events", {"limit": limit}).status_code == 422


def test_a_large_limit_is_reduced(api: Api):
    assert api.get("/events", {"limit": 10**6}).status_code == 200


def test_events_and_cursors_of_another_workspace_are_not_accessible(api: Api, bobs_api: Api):
    send(api)
    _, cursor = read_all(api)
    assert read_all(bobs_api)[0] == []
    for text in (cursor, "nonsense", "1", "é", cursor[:-1]):
        assert field_codes(bobs_api.get("/events", {"after": text})) == {"after": "invalid_cursor"}


def test_suppressions_are_events(api: Api, alice):
    added = api.post("/suppressions", {"emails": ["a@example.com", "b@example.com"]}).json()["data"]
    api.post("/suppressions", {"email": "a@example.com"})
    api.delete(f"/suppressions/{added[0]['id']}")
    events, _ = read_all(api)
    assert kinds_of(events) == ["suppression.added", "suppression.added", "suppression.removed"]
    assert [event["type"] for event in events] == kinds_of(events)
    assert events[2]["data"] == {"suppressionId": added[0]["id"], "email": "a@example.com", "reason": "manual"}


def test_a_bounce_adds_an_event_of_its_suppression(api: Api):
    send(api, to="gone@example.com")
    deliver_all(replace(BOUNCED, is_recipient_fault=True))
    assert Event.objects.get(kind="suppression.added").payload["reason"] == "bounce"


def test_a_recipient_that_is_suppressed_before_the_delivery_is_an_event(api: Api, alice):
    email_id = send(api)
    suppress_address(alice.workspace, address="ada@example.com", reason="manual")
    assert EmailQueueWork(None, sessions=10).claim(10).jobs == []
    events = {event["event"]: event for event in read_all(api)[0]}
    assert sorted(events) == ["failed", "queued", "suppressed", "suppression.added"]
    assert events["suppressed"]["type"] == "email.suppressed"
    assert events["suppressed"]["data"] == {
        "emailId": email_id, "to": "ada@example.com", "reason": "recipient_suppressed",
    }  # fmt: skip


def test_a_domain_that_is_verified_or_fails_is_an_event_once(api: Api, alice):
    domain = Domain.objects.get()
    for record in (MISSING, MISSING, VALID, VALID, MISSING):
        check_domain(domain, record)
    events, _ = read_all(api)
    assert kinds_of(events) == ["domain.failed", "domain.verified", "domain.failed"]
    assert events[1]["data"] == {"domainId": domain.id, "name": "alice.example", "status": "verified"}


def test_the_new_types_are_published_to_webhooks(api: Api, alice):
    kinds = ("scheduled", "suppression.added")
    make_endpoint(alice, URL, events=kinds)
    send(api, scheduledFor=later())
    send(api)
    suppress_address(alice.workspace, address="x@example.com", reason="manual")
    events, _ = read_all(api)
    wanted = [event for event in events if event["event"] in kinds]
    publish_committed()
    assert sorted(WebhookDelivery.objects.values_list("kind", flat=True)) == sorted(kinds)
    assert {*WebhookEvent.objects.values_list("id", flat=True)} == {event["id"] for event in wanted}
    publish_committed()
    assert WebhookDelivery.objects.count() == 2


def test_endpoints_in_another_format_get_no_event_without_a_counterpart(api: Api, alice):
    endpoint = make_endpoint(alice, URL, events=("suppression.added", "delivered"))
    api.patch(f"/webhooks/{endpoint.webhook.id}", {"format": "postmark"})
    suppress_address(alice.workspace, address="x@example.com", reason="manual")
    send(api)
    deliver_all()
    publish_committed()
    assert [*WebhookDelivery.objects.values_list("kind", flat=True)] == ["delivered"]


def test_retention_deletes_entries_and_workspace_events(api: Api, alice):
    suppress_address(alice.workspace, address="x@example.com", reason="manual")
    send(api)
    _, cursor = read_all(api)
    for _ in delete_expired(alice.workspace.id, timedelta(hours=1)):
        pass
    assert FeedEntry.objects.count() == 2
    FeedEntry.objects.update(recorded_at=Now() - timedelta(hours=2))
    Event.objects.filter(email=None).update(created_at=Now() - timedelta(hours=2))
    for _ in delete_expired(alice.workspace.id, timedelta(hours=1)):
        pass
    assert not FeedEntry.objects.exists()
    assert not Event.objects.filter(email=None).exists()
    assert read_all(api, after=cursor) == ([], cursor)


def test_erasing_an_address_deletes_its_events(api: Api, alice):
    suppress_address(alice.workspace, address="Ada@example.com", reason="manual")
    suppress_address(alice.workspace, address="eve@example.com", reason="manual")
    erase_person("ada@example.com")
    (event,), _ = read_all(api)
    assert event["data"]["email"] == "eve@example.com"


def test_a_stream_sends_the_events_from_a_cursor(api: Api):
    send(api)
    (queued,), _ = read_all(api)
    deliver_all()
    events, _ = read_all(api)
    response = api.get("/events/stream", **{"last-event-id": queued["cursor"]})
    assert response["Content-Type"] == "text/event-stream"
    text = b"".join(response.streaming_content).decode()
    assert [line for line in text.splitlines() if line.startswith("id:")] == [
        f"id: {one['cursor']}" for one in events[1:]
    ]
    assert "event: email.sent" in text
    assert api.get("/events/stream", {"after": "nonsense"}).status_code == 422


def test_a_stream_without_a_socket_ends_after_some_pages(api: Api, monkeypatch):
    monkeypatch.setattr("events.stream.MAX_PAGES", 1)
    monkeypatch.setattr("events.stream.DEFAULT_LIMIT", 1)
    for _ in range(3):
        send(api)
    (first, second, _), _ = read_all(api)
    response = api.get("/events/stream", {"after": first["cursor"]})
    text = b"".join(response.streaming_content).decode()
    assert [line for line in text.splitlines() if line.startswith("id:")] == [f"id: {second['cursor']}"]


def test_the_response_to_head_has_no_events(api: Api):
    send(api)
    read_all(api)
    request = APIRequestFactory().head("/v1/events/stream", headers=api.headers)
    assert list(EventStreamView.as_view()(request).streaming_content) == []
