"""Fixtures: a receiver, an endpoint of Alice that points to it, and a queue processor that posts due deliveries."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F
from django.utils import timezone

from core.lib.ids import new_id
from core.lib.network.address_guard import Guard
from core.lib.network.resolver import Resolver
from core.lib.network.target_urls import UrlRules
from core.lib.worker.event_loop import network_loop
from core.lib.worker.processor import QueueProcessor
from events.rendering import RenderedEvent
from tests.conftest import Account
from tests.events.feed import publish_committed
from tests.webhooks.receiver import Receiver
from webhooks.models import PendingDelivery, Webhook, WebhookDelivery
from webhooks.publishing import insert_deliveries
from webhooks.sending.post import Poster
from webhooks.sending.webhooks_work import WebhookQueueWork
from webhooks.services import create_webhook

# Nothing listens on this port, so every query fails at once.
NO_DNS = Resolver([("127.0.0.1", 9)], lifetime_seconds=0.2)


def submit(work: Coroutine[Any, Any, Any]) -> "Future[Any]":
    """Run a coroutine in the network loop of the queue processor."""
    return asyncio.run_coroutine_threadsafe(work, network_loop())


@dataclass
class Endpoint:
    webhook: Webhook
    secret: str

    def delivery(self) -> WebhookDelivery:
        return WebhookDelivery.objects.get(webhook=self.webhook)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiver:
        yield receiver


@pytest.fixture
def endpoint(alice: Account, receiver: Receiver) -> Endpoint:
    return make_endpoint(alice, receiver.url())


def make_endpoint(account: Account, url: str, *, events: tuple[str, ...] = ("delivered", "bounced")) -> Endpoint:
    return Endpoint(*create_webhook(account.workspace, url=url, events=events))


def publish_event(account: Account, *, kind: str = "delivered", **data: Any) -> str:
    """Publish an event of an email; return its id."""
    event_id = new_id("evt_")
    body = {"emailId": new_id(), "to": "ada@example.com", "subject": "Grüße", **data}
    publish([RenderedEvent(event_id, account.workspace.id, kind, timezone.now(), body)])
    return event_id


def publish_many(account: Account, count: int) -> None:
    data = {"emailId": new_id(), "to": "ada@example.com"}
    now = timezone.now()
    publish([RenderedEvent(new_id("evt_"), account.workspace.id, "delivered", now, data) for _ in range(count)])


def publish(events: Sequence[RenderedEvent]) -> None:
    """Make the deliveries of events that are in no feed."""
    webhooks = list(Webhook.objects.filter(active=True))
    insert_deliveries(
        [
            (event, webhook.id)
            for event in events
            for webhook in webhooks
            if event.workspace_id == webhook.workspace_id and event.kind in webhook.events
        ]
    )


def pass_time(**time: float) -> None:
    """Move the times of all pending deliveries into the past by this duration."""
    elapsed = timedelta(**time)
    PendingDelivery.objects.update(due_at=F("due_at") - elapsed, expires_at=F("expires_at") - elapsed)


@pytest.fixture
def queue_work() -> Iterator[WebhookQueueWork]:
    poster = Poster(UrlRules(guard=Guard(allow_private=True)), resolver=NO_DNS)
    yield WebhookQueueWork(poster, sessions=16)
    submit(poster.close()).result(5)


@pytest.fixture
def process_queue(queue_work: WebhookQueueWork) -> Callable[[], None]:
    """Return a function that publishes new events and posts due deliveries until none is left."""
    processor = QueueProcessor(queue_work)

    def process() -> None:
        publish_committed()
        processor.run()

    return process
