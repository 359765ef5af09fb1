"""`streams` of a webhook: only events about emails of these streams are delivered."""

import json

import pytest

from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply
from events.kinds import WEBHOOK_KINDS, EventKind
from events.recording import NewEvent, record_events
from streams.models import Stream
from suppressions.services import suppress_address
from tests.conftest import Api, make_domain
from tests.emails.builders import OK, deliver, deliver_all, send
from tests.events.feed import publish_committed
from tests.rows import each
from tests.webhooks.conftest import make_endpoint
from webhooks.models import Webhook, WebhookDelivery

pytestmark = pytest.mark.django_db
URL = "https://hooks.example.com/in"
SUPPRESSED = DeliveryOutcome(DeliveryStatus.FAILED, Reply(0, "suppressed"), reason="recipient_suppressed")


@pytest.fixture(autouse=True)
def _streams(alice):
    for number, slug in enumerate(("newsletter", "alerts"), 1):
        Stream.objects.create(workspace=alice.workspace, slug=slug, number=number, name=slug)


@pytest.fixture(autouse=True)
def _any_target(monkeypatch):
    monkeypatch.setattr("webhooks.services.check_target", lambda _: None)


def subscribe(alice, *streams: str) -> Webhook:
    webhook = make_endpoint(alice, URL, events=tuple(WEBHOOK_KINDS)).webhook
    Webhook.objects.filter(id=webhook.id).update(streams=list(streams))
    return webhook


def delivered(webhook: Webhook) -> list[tuple[str, str | None]]:
    """Return the type and stream of each event that an endpoint gets."""
    publish_committed()
    deliveries = WebhookDelivery.objects.filter(webhook=webhook).select_related("event").order_by("created_at", "kind")
    return [(delivery.kind, _data(delivery).get("stream")) for delivery in deliveries]


def _data(delivery: WebhookDelivery) -> dict:

    return json.loads(delivery.event.body)["data"]


@each(
    ("streams", "expected"),
    [
        ([], [None, "alerts", "newsletter"]),
        (["newsletter"], ["newsletter"]),
        (["main"], [None]),
        (["main", "alerts"], [None, "alerts"]),
    ],
)
def test_an_endpoint_gets_the_emails_of_its_streams(api: Api, alice, streams, expected):
    webhook = subscribe(alice, *streams)
    for stream in ("main", "newsletter", "alerts"):
        send(api, stream=stream)
        deliver(OK)
    kinds = {kind for kind, _ in delivered(webhook)}
    assert kinds == {"sent", "delivered"}
    assert sorted((s or "" for kind, s in delivered(webhook) if kind == "delivered")) == [s or "" for s in expected]


def test_suppressions_of_a_stream_follow_the_filter_and_those_of_the_workspace_do_not(alice):
    webhook = subscribe(alice, "newsletter")
    for stream in ("", "newsletter", "alerts"):
        suppress_address(alice.workspace, address="ada@example.com", reason="manual", stream=stream)
    assert sorted(delivered(webhook), key=str) == [("suppression.added", "newsletter"), ("suppression.added", None)]


def test_events_of_domains_are_about_no_stream(alice):
    webhook = subscribe(alice, "newsletter")
    domain = make_domain(alice.workspace, "alice.example")
    details = {"domainId": domain.id, "name": domain.name, "status": "verified"}
    record_events([NewEvent(EventKind.DOMAIN_VERIFIED, workspace_id=alice.workspace.id, details=details)])
    assert delivered(webhook) == [("domain.verified", None)]


@each(("stream", "expected"), [("newsletter", "newsletter"), ("main", None)])
def test_a_suppressed_recipient_names_its_stream(api: Api, alice, stream, expected):

    webhook, other = subscribe(alice, stream), subscribe(alice, "alerts")
    send(api, stream=stream)
    deliver_all(SUPPRESSED)
    assert sorted(delivered(webhook)) == [("failed", expected), ("suppressed", expected)]
    assert delivered(other) == []


def test_streams_are_shown_only_when_set(api: Api):
    plain = api.post("/webhooks", {"url": URL, "events": ["bounced"]}).json()
    assert "streams" not in plain
    assert "streams" not in api.post("/webhooks", {"url": URL, "events": ["bounced"], "streams": []}).json()
    body = {"url": URL, "events": ["bounced"], "streams": ["newsletter", "main", "newsletter"]}
    created = api.post("/webhooks", body).json()
    assert created["streams"] == ["newsletter", "main"]
    assert api.get(f"/webhooks/{created['id']}").json()["streams"] == ["newsletter", "main"]
    changed = api.patch(f"/webhooks/{created['id']}", {"streams": ["alerts"]}).json()
    assert changed["streams"] == ["alerts"]
    assert "streams" not in api.patch(f"/webhooks/{created['id']}", {"streams": []}).json()


def test_unknown_streams_are_refused(api: Api, bob):
    Stream.objects.create(workspace=bob.workspace, slug="secret", number=1, name="Secret")
    body = {"url": URL, "events": ["bounced"]}
    created = api.post("/webhooks", body).json()
    for response in (
        api.post("/webhooks", {**body, "streams": ["secret"]}),
        api.patch(f"/webhooks/{created['id']}", {"streams": ["main", "secret"]}),
    ):
        assert (response.status_code, response.json()["code"]) == (422, "stream_not_found")
    for streams in (["x"] * 21, "newsletter", [1], None):
        response = api.post("/webhooks", {**body, "streams": streams})
        assert (response.status_code, response.json()["code"]) == (422, "validation_error"), streams
