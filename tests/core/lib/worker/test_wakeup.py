"""Wake-ups: one notification until it is acknowledged, and no error without Redis."""

import secrets
import time
from itertools import pairwise

import pytest
import redis
from celery import current_app
from kombu.exceptions import OperationalError

from core.lib import redis_client
from core.lib.worker import wakeup
from tests.stack.stack import wait_for
from tools.embedded.servers.redis import start_throw_away


@pytest.fixture
def kind(monkeypatch) -> str:
    """A queue that no other test uses."""
    redis_client._paused_until.clear()
    return f"test-{secrets.token_hex(4)}"


@pytest.fixture
def sent_tasks(monkeypatch) -> list[str]:
    tasks: list[str] = []
    monkeypatch.setattr(current_app, "send_task", lambda name, **_: tasks.append(name))
    return tasks


def test_notifications_are_coalesced_until_acknowledged(kind, sent_tasks):
    wakeup.notify(kind)
    wakeup.notify(kind)
    assert sent_tasks == [f"{kind}.tasks.drain"]
    wakeup.acknowledge(kind)
    wakeup.notify(kind)
    assert sent_tasks == [f"{kind}.tasks.drain"] * 2
    wakeup.acknowledge(kind)


def test_without_redis_a_notification_is_silent_and_fast(kind, sent_tasks, settings):
    server = start_throw_away()
    settings.REDIS_URL = server.url
    server.stop()
    started = time.monotonic()
    for _ in range(100):
        wakeup.notify(kind)
        wakeup.acknowledge(kind)
    assert time.monotonic() - started < 2
    assert sent_tasks == []


def test_a_failing_broker_is_skipped_for_a_while(kind, settings, monkeypatch):
    def fail(*args, **options):
        raise OperationalError("no broker")

    monkeypatch.setattr(current_app, "send_task", fail)
    wakeup.notify(kind)
    assert redis_client._paused_until[settings.REDIS_URL] > time.monotonic()
    redis.Redis.from_url(settings.REDIS_URL).delete(wakeup._key(kind))
    redis_client._paused_until.clear()


def test_background_notifications_are_sent_soon_and_coalesced(kind, sent_tasks):
    for _ in range(100):
        wakeup.notify_soon(kind)
    wait_for(lambda: sent_tasks, seconds=5, what="a notification")
    wakeup.acknowledge(kind)
    wakeup.notify_soon(kind)
    wait_for(lambda: len(sent_tasks) == 2, seconds=5, what="another notification")


def test_a_burst_is_notified_at_once_and_then_at_intervals(kind, sent_tasks, monkeypatch):
    monkeypatch.setattr(wakeup, "notify", lambda _: sent_tasks.append(time.monotonic()))
    started = time.monotonic()
    while time.monotonic() - started < 1.1:
        wakeup.notify_soon(kind, every_seconds=0.5)
        time.sleep(0.01)
    wait_for(lambda: kind not in wakeup._pending, seconds=5, what="the last notification")
    times = [at - started for at in sent_tasks]
    assert times[0] < 0.5
    assert all(later - earlier > 0.4 for earlier, later in pairwise(times))
    assert 2 <= len(times) <= 4
