"""A bell rings once until it is answered, and a broken one disturbs nobody."""

import secrets
import time

import pytest
import redis
from celery import current_app
from kombu.exceptions import OperationalError

from embedded.servers.redis import start_throw_away
from lib import redis_client
from lib.worker import wakeup
from tests.stack.stack import wait_for


@pytest.fixture
def kind(monkeypatch) -> str:
    """A bell of this test's own."""
    redis_client._rest_until.clear()
    return f"test-{secrets.token_hex(4)}"


@pytest.fixture
def rung(monkeypatch) -> list[str]:
    tasks: list[str] = []
    monkeypatch.setattr(current_app, "send_task", lambda name, **_: tasks.append(name))
    return tasks


def test_many_rings_are_one_until_it_is_answered(kind, rung):
    wakeup.ring(kind)
    wakeup.ring(kind)
    assert rung == [f"{kind}.tasks.drain"]
    assert wakeup.answer(kind)
    assert not wakeup.answer(kind)
    wakeup.ring(kind)
    assert rung == [f"{kind}.tasks.drain"] * 2
    wakeup.answer(kind)


def test_without_redis_a_ring_is_silent_and_fast(kind, rung, settings):
    server = start_throw_away()
    settings.REDIS_URL = server.url
    server.stop()
    started = time.monotonic()
    for _ in range(100):
        wakeup.ring(kind)
        wakeup.answer(kind)
    assert time.monotonic() - started < 2
    assert rung == []


def test_a_broker_that_fails_is_left_alone_too(kind, settings, monkeypatch):
    def fail(*args, **options):
        raise OperationalError("no broker")

    monkeypatch.setattr(current_app, "send_task", fail)
    wakeup.ring(kind)
    assert redis_client._rest_until[settings.REDIS_URL] > time.monotonic()
    redis.Redis.from_url(settings.REDIS_URL).delete(wakeup._key(kind))
    redis_client._rest_until.clear()


def test_rings_that_nobody_waits_for_come_soon_and_together(kind, rung):
    for _ in range(100):
        wakeup.ring_soon(kind)
    wait_for(lambda: rung, seconds=5, what="a ring")
    wakeup.answer(kind)
    wakeup.ring_soon(kind)
    wait_for(lambda: len(rung) == 2, seconds=5, what="another ring")
