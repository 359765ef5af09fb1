"""A receiver, an endpoint of Alice's that points at it, and a drain that posts what is due."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from django.db.models import F
from django.utils import timezone

from lib.address_guard import Guard
from lib.guarded_http import Rules
from lib.ids import new_id
from lib.resolver import Resolver
from lib.worker.event_loop import network_loop
from lib.worker.processor import Drain
from tests.conftest import Account
from tests.webhooks.receiver import Receiver
from webhooks.models import Pending, Webhook, WebhookDelivery
from webhooks.publish import Announcement, announce
from webhooks.sending.post import Poster
from webhooks.sending.sending import Sending
from webhooks.services import create_webhook

# Nothing listens there; every question fails at once.
NO_DNS = Resolver([("127.0.0.1", 9)], lifetime_seconds=0.2)


def submit(work: Coroutine[Any, Any, Any]) -> "Future[Any]":
    """Run a coroutine where the drain runs its jobs."""
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


def tell(account: Account, *, kind: str = "delivered", **data: Any) -> str:
    """Announce an event of an email; return its id."""
    event_id = new_id("evt_")
    body = {"emailId": new_id(), "to": "ada@example.com", "subject": "Grüße", **data}
    announce([Announcement(account.workspace.id, kind, event_id, timezone.now(), body)])
    return event_id


def tell_many(account: Account, count: int) -> None:
    data = {"emailId": new_id(), "to": "ada@example.com"}
    now = timezone.now()
    announce(
        [Announcement(account.workspace.id, "delivered", new_id("evt_"), now, data) for _ in range(count)],
    )


def pass_time(**time: float) -> None:
    """Move all that waits into the past by this much."""
    gone = timedelta(**time)
    Pending.objects.update(due_at=F("due_at") - gone, expires_at=F("expires_at") - gone)


@pytest.fixture
def sending() -> Iterator[Sending]:
    poster = Poster(Rules(guard=Guard(allow_private=True)), resolver=NO_DNS)
    yield Sending(poster, sessions=16)
    submit(poster.close()).result(5)


@pytest.fixture
def drain(sending: Sending) -> Callable[[], None]:
    """Post everything that is due, until nothing is."""
    return Drain(sending).run
