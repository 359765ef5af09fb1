"""Delivery guarantees (docs/specification.md, Delivery) with killed workers and stopped servers."""

import signal
import time
from statistics import median

import pytest

from core.lib.worker.stages import Stage
from tests.stack.entries import EMAILS, count_entries, expire_leases, send_many
from tests.stack.stack import wait_for

pytestmark = pytest.mark.stack


def test_a_worker_killed_in_the_middle_of_200_sends_loses_none(web_stack):
    send_many(web_stack, 200)
    web_stack.start("worker-1", DELIVERY_CONNECTIONS="8", FAULT_PLAN="delivery.after_dot:100:kill")
    web_stack.processes.pop("worker-1").wait(60)
    leased = count_entries(web_stack, EMAILS, Stage.LEASED)
    assert web_stack.query("SELECT count(*) FROM emails_pending")[0][0] > 0
    expire_leases(web_stack)
    web_stack.start("worker-2")
    wait_for(web_stack.all_delivered, seconds=60, what="every email is delivered")
    messages = web_stack.caught()
    assert len(messages) == 200
    duplicated = {path for path, count in messages.items() if count > 1}
    assert max(messages.values()) <= 2
    assert len(duplicated) <= leased
    lost = web_stack.query("SELECT recipient_id FROM emails_event WHERE payload->>'reason' = 'worker_lost'")
    assert len(lost) == leased, "each ambiguous recipient has an event on its timeline"
    assert web_stack.query("SELECT count(*) FROM emails_pending") == [(0,)]


def test_without_redis_emails_are_accepted_fast_and_delivered(stack):
    stack.start("inbox", "web", "worker", "beat")

    def send(name):
        answer = stack.send(to=f"{name}@example.com")
        assert answer.status == 202
        return answer.seconds

    send("warm")
    wait_for(stack.all_delivered, seconds=60, what="a warm worker")
    # In turn, since other programs come and go.
    with_redis, frozen = [], []
    for number in range(20):
        with_redis.append(send(f"w{number}"))
        stack.redis.process.send_signal(signal.SIGSTOP)
        frozen.append(send(f"f{number}"))
        stack.redis.process.send_signal(signal.SIGCONT)
    # A call of Redis waits for 0.1 s.
    assert median(frozen) < 2 * median(with_redis) + 0.05, (with_redis, frozen)
    stack.redis.process.send_signal(signal.SIGSTOP)
    send("frozen")
    wait_for(stack.all_delivered, seconds=60, what="delivery while Redis is frozen")
    stack.redis.process.send_signal(signal.SIGCONT)
    stack.redis.stop()
    send_many(stack, 20)
    wait_for(stack.all_delivered, seconds=60, what="delivery without Redis")
    assert len(stack.caught()) == 62
    assert set(stack.caught().values()) == {1}


def test_a_worker_that_starts_without_redis_sends(stack):
    stack.redis.stop()
    stack.start("inbox", "web", "worker")
    stack.send()
    wait_for(stack.all_delivered, seconds=60, what="the delivery")


def test_without_beat_emails_are_delivered(web_stack):
    web_stack.start("worker")
    assert web_stack.send().status == 202
    wait_for(web_stack.all_delivered, seconds=60, what="the delivery")


def test_sigterm_under_load_stops_within_a_minute_without_duplicates(web_stack):
    send_many(web_stack, 200)
    web_stack.start("worker-1")
    wait_for(lambda: len(web_stack.caught()) > 10, seconds=60, what="sending")
    web_stack.processes["worker-1"].send_signal(signal.SIGTERM)
    assert web_stack.processes["worker-1"].wait(60) == 0
    assert count_entries(web_stack, EMAILS, Stage.LEASED) == 0
    web_stack.start("worker-2")
    wait_for(web_stack.all_delivered, seconds=60, what="every email is delivered")
    assert set(web_stack.caught().values()) == {1}
    assert len(web_stack.caught()) == 200


def test_a_restarted_database_loses_no_result(stack):
    stack.start("inbox", "web")
    send_many(stack, 100)
    stack.start("worker", DELIVERY_CONNECTIONS="8", DELIVERY_RETRY_SECONDS="1")
    wait_for(lambda: len(stack.caught()) > 10, seconds=60, what="sending")
    stack.drop_connections()
    wait_for(stack.all_delivered, seconds=120, what="every email is delivered")
    assert len(stack.caught()) == 100


def test_a_database_that_drops_its_connections_fails_no_request(stack):
    stack.start("inbox", "web")
    for _ in range(6):
        assert stack.send().status == 202
    stack.drop_connections()
    time.sleep(0.2)
    assert {stack.send().status for _ in range(12)} == {202}
