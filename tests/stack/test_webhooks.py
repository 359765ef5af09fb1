"""Webhook delivery by the real processes, despite killed processes and failing receivers."""

import signal

import pytest
import standardwebhooks

from core.lib.worker.stages import Stage
from tests.stack.entries import WEBHOOKS, count_entries, expire_leases, send_many
from tests.stack.limits import limited
from tests.stack.stack import wait_for
from tests.webhooks.receiver import Receiver, silence, status

pytestmark = pytest.mark.stack

NEXT_ATTEMPT = "UPDATE webhooks_pending SET due_at = now(), expires_at = expires_at - interval '2 h' RETURNING 1"
# An interrupted delivery or webhook request is retried soon.
FAST = {"DELIVERY_RETRY_SECONDS": "1", "WEBHOOK_RETRY_SECONDS": ",".join(["1"] * 20)}


@pytest.fixture
def receiver():
    with Receiver() as receiver:
        yield receiver


def register(stack, receiver, *events):
    answer = stack.call("POST", "/webhooks", {"url": receiver.url(), "events": events or ["delivered"]})
    assert answer.status == 201
    return answer.body


def unfinished(stack):
    return count_entries(stack, WEBHOOKS)


def ids_of(receiver):
    return {request.header("webhook-id") for request in receiver.received}


@limited(2)
def test_a_webhook_arrives_within_two_seconds_and_verifies(web_stack, receiver, limit):
    web_stack.start("worker")
    webhook = register(web_stack, receiver, "sent", "email.delivered")
    web_stack.send()
    wait_for(lambda: len(receiver.received) == 2, seconds=60, what="a warm worker")
    sent = web_stack.send(to="grace@example.com")
    wait_for(lambda: len(receiver.received) == 4, seconds=limit, what="both events")
    for request in receiver.received[2:]:
        body = standardwebhooks.Webhook(webhook["secret"]).verify(
            request.body, {name.lower(): value for name, value in request.headers.items()}
        )
        assert (body["data"]["emailId"], body["data"]["to"]) == (sent.body["id"], "grace@example.com")
    expected = [("queued", False), ("sent", True), ("delivered", True)]

    def timeline():
        events = web_stack.call("GET", f"/emails/{sent.body['id']}/events").body["data"]
        return [(event["eventType"], event["sentToWebhook"]) for event in events]

    wait_for(lambda: timeline() == expected, seconds=60, what="the timeline")


def test_killed_workers_and_a_dead_redis_lose_no_event(stack, receiver):
    stack.start("inbox", "web", "worker-1")
    register(stack, receiver)
    receiver.answer = silence
    emails = send_many(stack, 60)
    wait_for(lambda: len(receiver.received) >= 4, seconds=60, what="attempts under way")
    stack.kill("worker-1")
    stack.redis.stop()
    wait_for(lambda: unfinished(stack) > 0, seconds=60, what="unfinished deliveries")
    receiver.answer = status(200)
    expire_leases(stack)
    stack.start("worker-2", "worker-3")
    wait_for(lambda: len(ids_of(receiver)) == 60 and not unfinished(stack), seconds=60, what="every event")
    assert stack.query("SELECT status, count(*) FROM webhooks_webhookdelivery GROUP BY 1") == [("succeeded", 60)]
    bodies = {request.header("webhook-id"): set() for request in receiver.received}
    for request in receiver.received:
        bodies[request.header("webhook-id")].add(request.body)
    assert len(bodies) == len(emails)
    assert {len(same) for same in bodies.values()} == {1}, "each event had the same bytes on every attempt"


def test_a_receiver_that_was_down_for_hours_gets_every_event(web_stack, receiver):
    web_stack.start("worker")
    register(web_stack, receiver)
    receiver.answer = status(503)
    send_many(web_stack, 20)
    wait_for(lambda: len(ids_of(receiver)) == 20, seconds=60, what="the first attempts")
    for round_number in range(2, 5):
        wait_for(
            lambda: count_entries(web_stack, WEBHOOKS, Stage.WAITING) == 20,
            seconds=60,
            what="all deliveries to wait",
        )
        web_stack.query(NEXT_ATTEMPT)
        wait_for(lambda n=round_number: len(receiver.received) == 20 * n, seconds=60, what="the next attempts")
    receiver.answer = status(200)
    web_stack.query("UPDATE webhooks_pending SET due_at = now() RETURNING 1")
    wait_for(lambda: not unfinished(web_stack), seconds=60, what="every event")
    assert web_stack.query("SELECT DISTINCT status FROM webhooks_webhookdelivery") == [("succeeded",)]
    assert len(ids_of(receiver)) == 20
    assert len({request.body for request in receiver.received}) == 20


def test_sigterm_finishes_requests_in_flight_and_starts_no_others(web_stack, receiver):
    web_stack.start("worker-1", **FAST)
    register(web_stack, receiver)
    send_many(web_stack, 100)
    wait_for(lambda: len(receiver.received) > 10, seconds=60, what="webhook requests")
    web_stack.processes["worker-1"].send_signal(signal.SIGTERM)
    assert web_stack.processes["worker-1"].wait(60) == 0
    assert count_entries(web_stack, WEBHOOKS, Stage.LEASED) == 0
    web_stack.start("worker-2", **FAST)
    # Events are published after the delivery that they are about.
    wait_for(lambda: len(ids_of(receiver)) == 100 and not unfinished(web_stack), seconds=60, what="every event")
    assert len(receiver.received) == 100
