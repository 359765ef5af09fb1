"""A Redis that nobody waits for: it answers at once, or it is left alone for a moment.

The client's own patience costs 3 to 6 s a call while Redis is down, and what is asked here is never
worth that: a lost ring costs two seconds at most, a lost bucket a few requests too many.
"""

import functools
import logging
import time
from collections.abc import Callable
from typing import TypeVar

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

log = logging.getLogger("postrider.redis")

TIMEOUT_SECONDS = 0.1
REST_SECONDS = 1.0

Answer = TypeVar("Answer")

# By address, so that one broken server does not silence another.
_rest_until: dict[str, float] = {}


def ask_redis(url: str, question: Callable[[redis.Redis], Answer]) -> Answer | None:
    """Return the answer of the Redis at an address, None while it is out of reach. Raises nothing of Redis'."""
    if time.monotonic() < _rest_until.get(url, 0.0):
        return None
    try:
        return question(_client(url))
    except (redis.RedisError, OSError) as error:
        _rest_until[url] = time.monotonic() + REST_SECONDS
        log.warning("Redis does not answer; going on without it", extra={"data": {"error": str(error)}})
        return None


@functools.cache
def _client(url: str) -> redis.Redis:
    return redis.Redis.from_url(
        url, socket_timeout=TIMEOUT_SECONDS, socket_connect_timeout=TIMEOUT_SECONDS, retry=Retry(NoBackoff(), 0)
    )
