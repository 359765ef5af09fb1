"""Wake-ups for the workers. A failed notification never fails or delays the request that sends it.

A notification carries no data: a worker that receives one queries the database. Without Redis the workers' own
timers find the work within seconds.
See docs/decisions/0096.
"""

import functools
import os
import threading
import time

import redis
from celery import current_app
from django.conf import settings
from kombu.exceptions import OperationalError

from core.lib.redis_client import ask_redis

COALESCE_SECONDS = 5
NOTIFY_EVERY_SECONDS = 0.02

# The kinds to notify, with the seconds between two notifications.
_pending: dict[str, float] = {}


def notify(kind: str) -> None:
    """Ask a worker to process the queue `kind`, such as `emails`; notifications before it starts are coalesced."""
    ask_redis(settings.REDIS_URL, lambda client: _notify(client, kind))


def notify_soon(kind: str, *, every_seconds: float = NOTIFY_EVERY_SECONDS) -> None:
    """Notify without waiting for Redis; calls within every_seconds after a notification are coalesced."""
    _pending[kind] = every_seconds
    _notifier(os.getpid()).set()


def acknowledge(kind: str) -> None:
    """Let the next notification through."""
    ask_redis(settings.REDIS_URL, lambda client: client.delete(_key(kind)))


@functools.lru_cache(maxsize=1)
def _notifier(process_id: int) -> threading.Event:
    """Start this process's notifier thread, which a fork does not inherit; setting the event wakes it."""
    wake = threading.Event()
    threading.Thread(target=_notify_pending, args=[wake], name="notifier", daemon=True).start()
    return wake


def _notify_pending(wake: threading.Event) -> None:
    notified_at: dict[str, float] = {}
    while wake.wait():
        wake.clear()
        while _pending:
            for kind, every_seconds in list(_pending.items()):
                if time.monotonic() - notified_at.get(kind, float("-inf")) >= every_seconds:
                    # First: a call from now on belongs to the next notification.
                    del _pending[kind]
                    notified_at[kind] = time.monotonic()
                    notify(kind)
            time.sleep(NOTIFY_EVERY_SECONDS)


def _notify(client: redis.Redis, kind: str) -> None:
    # The key is deleted when the task starts; its expiry only covers a task that Redis lost.
    if not client.set(_key(kind), "1", nx=True, ex=COALESCE_SECONDS):
        return
    try:
        current_app.send_task(f"{kind}.tasks.drain", retry=False, expires=COALESCE_SECONDS)
    except OperationalError as error:
        raise redis.ConnectionError(str(error)) from error


def _key(kind: str) -> str:
    return f"postrider:bell:{kind}"
