"""Redis calls that never block for long: a server that does not respond is skipped for a second.

The client's default retries cost 3 to 6 s per call while Redis is down, which is never worth it here: a lost wake-up
costs five seconds at most, a lost token bucket a few requests too many.
"""

import functools
import logging
import time
from collections.abc import Callable
from typing import TypeVar

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from lib.outage_log import OutageLog

log = logging.getLogger("postrider.redis")
outage = OutageLog(log, down="Redis does not respond; continuing without it", up="Redis responds again")

TIMEOUT_SECONDS = 0.1
PAUSE_SECONDS = 1.0

Reply = TypeVar("Reply")

# By URL, so that one failing server does not disable another.
_paused_until: dict[str, float] = {}


def ask_redis(url: str, command: Callable[[redis.Redis], Reply]) -> Reply | None:
    """Return the reply of the Redis at `url`, None while it is unavailable. Never raises an error of Redis."""
    if time.monotonic() < _paused_until.get(url, 0.0):
        return None
    try:
        reply = command(_client(url))
    except (redis.RedisError, OSError) as error:
        _paused_until[url] = time.monotonic() + PAUSE_SECONDS
        outage.record_failure(error)
        return None
    outage.record_success()
    return reply


@functools.cache
def _client(url: str) -> redis.Redis:
    return redis.Redis.from_url(
        url, socket_timeout=TIMEOUT_SECONDS, socket_connect_timeout=TIMEOUT_SECONDS, retry=Retry(NoBackoff(), 0)
    )
