"""Isolation of endpoints: a hanging endpoint with thousands of pending deliveries does not delay other endpoints."""

import threading
import time

import pytest
from django.db import connection

from core.lib.network.address_guard import Guard
from core.lib.network.target_urls import UrlRules
from core.lib.worker import shutdown
from core.lib.worker.processor import QueueProcessor
from core.lib.worker.stages import Stage
from tests.stack.stack import wait_for
from tests.webhooks.conftest import NO_DNS, make_endpoint, publish_event, publish_many, submit
from tests.webhooks.receiver import Receiver, drip, silence
from webhooks.models import PendingDelivery, Webhook, WebhookDelivery
from webhooks.sending import post
from webhooks.sending.post import Poster
from webhooks.sending.webhooks_work import WebhookQueueWork

pytestmark = pytest.mark.django_db(transaction=True)

SESSIONS = 32


class Worker:
    """A queue processor; one thread runs it, another one wakes it up, as the timer and notifications do."""

    def __init__(self) -> None:
        self.poster = Poster(UrlRules(guard=Guard(allow_private=True)), resolver=NO_DNS)
        self.processor = QueueProcessor(WebhookQueueWork(self.poster, sessions=SESSIONS))
        self.is_stopped = threading.Event()
        self.threads = [threading.Thread(target=self.run, daemon=True) for _ in range(2)]

    def run(self) -> None:
        while not self.is_stopped.wait(0.1):
            self.processor.run()
        connection.close()


@pytest.fixture
def worker(monkeypatch):
    monkeypatch.setattr(shutdown, "_stopping", threading.Event())
    worker = Worker()
    for thread in worker.threads:
        thread.start()
    yield worker
    worker.is_stopped.set()
    # No grace period: hanging attempts are abandoned.
    monkeypatch.setattr(shutdown, "GRACE_SECONDS", 0.0)
    shutdown.stop()
    for thread in worker.threads:
        thread.join(10)
        assert not thread.is_alive()
    submit(worker.poster.close()).result(5)


def p99_of(receiver: Receiver, path: str, started_by_id: dict[str, float]) -> float:
    seconds = sorted(
        request.at - started_by_id[request.header("webhook-id")]
        for request in receiver.received
        if request.path == path
    )
    assert len(seconds) == len(started_by_id)
    return seconds[int(len(seconds) * 0.99) - 1]


def deliver(alice, bob, receiver: Receiver, *, pending: int, events: int) -> float:
    """Let Alice's endpoint hang with pending deliveries; return Bob's p99 from event to arrival, in seconds."""
    receiver.answers["/hangs"] = silence
    make_endpoint(alice, receiver.url("/hangs"))
    make_endpoint(bob, receiver.url("/quick"))
    for _ in range(pending // 1000):
        publish_many(alice, 1000)
    wait_for(lambda: len(receiver.received) >= 4, seconds=10, what="the endpoint to hang")
    started_by_id = {}
    for _ in range(events):
        started_at = time.monotonic()
        started_by_id[publish_event(bob)] = started_at
        time.sleep(0.01)
    wait_for(lambda: WebhookDelivery.objects.filter(status="succeeded").count() == events, seconds=60, what="Bob's")
    return p99_of(receiver, "/quick", started_by_id)


def test_another_endpoint_is_posted_to_within_two_seconds(alice, bob, receiver, worker, monkeypatch):
    monkeypatch.setattr(post, "ATTEMPT_SECONDS", 3.0)
    assert deliver(alice, bob, receiver, pending=2000, events=150) < 2
    assert PendingDelivery.objects.filter(stage=Stage.READY).count() > 1900, "deliveries over the pace use no attempt"


def test_hanging_endpoints_leave_half_of_the_sessions_free(alice, bob, receiver, worker, monkeypatch):
    """More endpoints hang than the process has sessions; some of them drip their responses."""
    monkeypatch.setattr(post, "ATTEMPT_SECONDS", 3.0)
    receiver.answers["/0"] = silence
    receiver.answers["/1"] = drip(b"HTTP/1.1 200 OK\r\n", every_seconds=0.5, tail=b"a")
    for number in range(20):
        make_endpoint(alice, receiver.url(f"/{number % 2}"))
    Webhook.objects.update(pace=2)
    make_endpoint(bob, receiver.url("/quick"))
    for _ in range(10):
        publish_event(alice)
    wait_for(lambda: len(receiver.received) >= SESSIONS // 2, seconds=10, what="half of the sessions to be in use")
    started_by_id = {}
    for _ in range(100):
        started_at = time.monotonic()
        started_by_id[publish_event(bob)] = started_at
        time.sleep(0.01)
    wait_for(lambda: WebhookDelivery.objects.filter(status="succeeded").count() == 100, seconds=30, what="Bob's")
    assert p99_of(receiver, "/quick", started_by_id) < 2


def test_a_backlog_of_one_quick_endpoint_is_posted_at_once(alice, receiver, worker):
    """Deliveries over the pace are posted as results arrive, not at the next notification."""
    make_endpoint(alice, receiver.url())
    started = time.monotonic()
    publish_many(alice, 1000)
    wait_for(lambda: not PendingDelivery.objects.exists(), seconds=30, what="the backlog")
    assert time.monotonic() - started < 15
    assert len({request.header("webhook-id") for request in receiver.received}) == len(receiver.received) == 1000
