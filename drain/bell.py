"""Ring for the workers. A bell that cannot ring never fails or delays the request that rings it.

It carries nothing: a worker that hears it looks at the database. Without Redis the workers' own timer
finds the work within seconds.
"""

import logging
import threading
import time

import redis
from celery import current_app
from django.conf import settings
from kombu.exceptions import OperationalError
from redis.backoff import NoBackoff
from redis.retry import Retry

log = logging.getLogger("postrider.bell")

# A lost ring costs two seconds at most, a slow Redis must not cost a request more than this.
TIMEOUT_SECONDS = 0.1
REST_SECONDS = 1.0
COALESCE_SECONDS = 5

_rest_until = 0.0
_lock = threading.Lock()


def ring(kind: str) -> None:
    """Ask some worker to drain `emails` or `webhooks`; many rings before it starts become one."""
    if time.monotonic() < _rest_until:
        return
    try:
        # Deleted when a drain starts; its expiry only covers a task that Redis lost.
        if _client().set(_key(kind), "1", nx=True, ex=COALESCE_SECONDS):
            current_app.send_task(f"{kind}.tasks.drain", retry=False, expires=COALESCE_SECONDS)
    except (redis.RedisError, OperationalError, OSError) as error:
        _rest(error)


def answer(kind: str) -> None:
    """Say that a drain has begun: what comes from now on rings anew."""
    if time.monotonic() < _rest_until:
        return
    try:
        _client().delete(_key(kind))
    except (redis.RedisError, OSError) as error:
        _rest(error)


def _key(kind: str) -> str:
    return f"postrider:bell:{kind}"


def _rest(error: Exception) -> None:
    """Leave a broken Redis alone for a moment: the client's own patience costs seconds a call."""
    global _rest_until  # noqa: PLW0603 - one bell a process
    _rest_until = time.monotonic() + REST_SECONDS
    log.warning(
        "Redis does not answer; workers will find the work by themselves", extra={"data": {"error": str(error)}}
    )


_shared: redis.Redis | None = None


def _client() -> redis.Redis:
    global _shared  # noqa: PLW0603
    with _lock:
        if _shared is None:
            _shared = redis.Redis.from_url(
                settings.REDIS_URL,
                socket_timeout=TIMEOUT_SECONDS,
                socket_connect_timeout=TIMEOUT_SECONDS,
                retry=Retry(NoBackoff(), 0),
            )
    return _shared
