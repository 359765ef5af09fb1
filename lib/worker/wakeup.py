"""Ring for the workers. A bell that cannot ring never fails or delays the request that rings it.

It carries nothing: a worker that hears it looks at the database. Without Redis the workers' own timer
finds the work within seconds.
"""

import functools
import os
import threading
import time

import redis
from celery import current_app
from django.conf import settings
from kombu.exceptions import OperationalError

from lib.redis_client import ask_redis

COALESCE_SECONDS = 5
RING_EVERY_SECONDS = 0.02

_wanted: set[str] = set()


def ring(kind: str) -> None:
    """Ask some worker to drain `emails` or `webhooks`; many rings before it starts become one."""
    ask_redis(settings.REDIS_URL, lambda client: _ring(client, kind))


def ring_soon(kind: str) -> None:
    """Ring without waiting for Redis; many within RING_EVERY_SECONDS are one."""
    _wanted.add(kind)
    _ringer(os.getpid()).set()


def answer(kind: str) -> bool:
    """Let whoever comes from now on ring anew; return whether anybody rang since the last answer."""
    return bool(ask_redis(settings.REDIS_URL, lambda client: client.delete(_key(kind))))


@functools.lru_cache(maxsize=1)
def _ringer(process_id: int) -> threading.Event:
    """Start the thread that rings for this process, a forked one has none; setting the event wakes it."""
    wake = threading.Event()
    threading.Thread(target=_ring_wanted, args=[wake], name="bell", daemon=True).start()
    return wake


def _ring_wanted(wake: threading.Event) -> None:
    while wake.wait():
        wake.clear()
        while _wanted:
            ring(_wanted.pop())
        time.sleep(RING_EVERY_SECONDS)


def _ring(client: redis.Redis, kind: str) -> None:
    # Deleted when a drain starts; its expiry only covers a task that Redis lost.
    if not client.set(_key(kind), "1", nx=True, ex=COALESCE_SECONDS):
        return
    try:
        current_app.send_task(f"{kind}.tasks.drain", retry=False, expires=COALESCE_SECONDS)
    except OperationalError as error:
        raise redis.ConnectionError(str(error)) from error


def _key(kind: str) -> str:
    return f"postrider:bell:{kind}"
