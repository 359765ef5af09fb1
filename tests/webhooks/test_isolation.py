"""An endpoint that hangs, with thousands of deliveries waiting, delays nobody else."""

import threading
import time

import pytest
from django.db import connection

from lib.address_guard import Guard
from lib.guarded_http import Rules
from lib.worker import shutdown
from lib.worker.processor import Drain
from tests.stack.stack import wait_for
from tests.webhooks.conftest import NO_DNS, make_endpoint, submit, tell, tell_many
from tests.webhooks.receiver import Receiver, drip, silence
from webhooks.models import Pending, Webhook, WebhookDelivery
from webhooks.sending import post
from webhooks.sending.post import Poster
from webhooks.sending.sending import Sending

pytestmark = pytest.mark.django_db(transaction=True)

SESSIONS = 32


class Worker:
    """A process's drain; one thread runs it, another wakes it up, as timer and bell do."""

    def __init__(self) -> None:
        self.poster = Poster(Rules(guard=Guard(allow_private=True)), resolver=NO_DNS)
        self.drain = Drain(Sending(self.poster, sessions=SESSIONS))
        self.is_over = threading.Event()
        self.threads = [threading.Thread(target=self.run, daemon=True) for _ in range(2)]

    def run(self) -> None:
        while not self.is_over.wait(0.1):
            self.drain.run()
        connection.close()


@pytest.fixture
def worker(monkeypatch):
    monkeypatch.setattr(shutdown, "_stopping", threading.Event())
    worker = Worker()
    for thread in worker.threads:
        thread.start()
    yield worker
    worker.is_over.set()
    # Without a grace: what hangs is left.
    monkeypatch.setattr(shutdown, "GRACE_SECONDS", 0.0)
    shutdown.stop()
    for thread in worker.threads:
        thread.join(10)
        assert not thread.is_alive()
    submit(worker.poster.close()).result(5)


def p99_of(receiver: Receiver, path: str, began: dict[str, float]) -> float:
    seconds = sorted(
        request.at - began[request.header("webhook-id")] for request in receiver.received if request.path == path
    )
    assert len(seconds) == len(began)
    return seconds[int(len(seconds) * 0.99) - 1]


def deliver(alice, bob, receiver: Receiver, *, waiting: int, events: int) -> float:
    """Let Alice's endpoint hang with so many waiting; return Bob's p99 from event to arrival."""
    receiver.answers["/hangs"] = silence
    make_endpoint(alice, receiver.url("/hangs"))
    make_endpoint(bob, receiver.url("/quick"))
    for _ in range(waiting // 1000):
        tell_many(alice, 1000)
    wait_for(lambda: len(receiver.received) >= 4, seconds=10, what="the endpoint to hang")
    began = {}
    for _ in range(events):
        began_at = time.monotonic()
        began[tell(bob)] = began_at
        time.sleep(0.01)
    wait_for(lambda: WebhookDelivery.objects.filter(status="succeeded").count() == events, seconds=60, what="Bob's")
    return p99_of(receiver, "/quick", began)


def test_another_endpoint_is_posted_to_within_two_seconds(alice, bob, receiver, worker, monkeypatch):
    monkeypatch.setattr(post, "ATTEMPT_SECONDS", 3.0)
    assert deliver(alice, bob, receiver, waiting=2000, events=150) < 2
    assert Pending.objects.filter(stage=Pending.Stage.READY).count() > 1900, "held-back ones used up no attempt"


@pytest.mark.long
def test_another_endpoint_is_posted_to_within_two_seconds_of_ten_thousand(alice, bob, receiver, worker):
    assert deliver(alice, bob, receiver, waiting=10_000, events=3000) < 2


def test_many_endpoints_that_hang_leave_half_of_the_room(alice, bob, receiver, worker, monkeypatch):
    """More endpoints hang than the process has sessions for; answers that drip are no better."""
    monkeypatch.setattr(post, "ATTEMPT_SECONDS", 3.0)
    receiver.answers["/0"] = silence
    receiver.answers["/1"] = drip(b"HTTP/1.1 200 OK\r\n", every_seconds=0.5, tail=b"a")
    for number in range(20):
        make_endpoint(alice, receiver.url(f"/{number % 2}"))
    Webhook.objects.update(pace=2)
    make_endpoint(bob, receiver.url("/quick"))
    for _ in range(10):
        tell(alice)
    wait_for(lambda: len(receiver.received) >= SESSIONS // 2, seconds=10, what="half of the room to be taken")
    began = {}
    for _ in range(100):
        began_at = time.monotonic()
        began[tell(bob)] = began_at
        time.sleep(0.01)
    wait_for(lambda: WebhookDelivery.objects.filter(status="succeeded").count() == 100, seconds=30, what="Bob's")
    assert p99_of(receiver, "/quick", began) < 2


def test_a_backlog_of_one_quick_endpoint_is_worked_off_at_once(alice, receiver, worker):
    """What its pace holds back goes out as results come in, not with the next ring."""
    make_endpoint(alice, receiver.url())
    started = time.monotonic()
    tell_many(alice, 1000)
    wait_for(lambda: not Pending.objects.exists(), seconds=30, what="the backlog")
    assert time.monotonic() - started < 15
    assert len({request.header("webhook-id") for request in receiver.received}) == len(receiver.received) == 1000
