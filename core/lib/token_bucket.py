"""Token buckets for rate limits, shared in Redis by all processes and, while Redis is down, local to each process.

A bucket is one number: the time at which it is full again (the generic cell rate algorithm). Taking a token moves that
time by one step; the bucket is empty when it is further ahead than the time that all tokens take to refill.
See docs/decisions/0014.
"""

import threading
import time
from dataclasses import dataclass
from functools import partial

import redis
from django.conf import settings

from core.lib.redis_client import ask_redis

# The script uses the clock of Redis, since the clocks of hosts disagree. A bucket owes at most as much as it holds,
# also after a clock was set back. The key expires when the bucket is full.
TAKE = """
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local step, capacity, owed = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local full_at = tonumber(redis.call('GET', KEYS[1]) or now)
full_at = math.min(math.max(full_at, now), now + 2 * capacity)
if owed == 0 and full_at + step - now > capacity then
  return {0, full_at - now}
end
full_at = math.min(full_at + step * math.max(owed, 1), now + 2 * capacity)
redis.call('SET', KEYS[1], string.format('%.0f', full_at), 'PX', math.ceil((full_at - now) / 1000))
return {1, full_at - now}
"""
SECOND_MICROSECONDS = 1_000_000
KEY_PREFIX = "postrider:bucket:"
MAX_MEMORY_BUCKETS = 10_000


@dataclass(frozen=True)
class RateLimit:
    """Tokens refilled per second, and the capacity of the bucket."""

    per_second: float
    burst: int

    @property
    def step_microseconds(self) -> int:
        """Microseconds to refill one token."""
        return round(SECOND_MICROSECONDS / self.per_second)

    @property
    def capacity_microseconds(self) -> int:
        """Microseconds to fill an empty bucket."""
        return self.burst * self.step_microseconds


@dataclass(frozen=True)
class BucketState:
    """The state of a bucket after a token was requested."""

    limit: RateLimit
    is_allowed: bool
    full_in_microseconds: int

    @property
    def remaining(self) -> int:
        left = self.limit.capacity_microseconds - self.full_in_microseconds
        return max(left // self.limit.step_microseconds, 0)

    @property
    def retry_after_seconds(self) -> int:
        """Whole seconds until the next token, at least 1."""
        return max(
            _seconds(self.full_in_microseconds + self.limit.step_microseconds - self.limit.capacity_microseconds), 1
        )

    def headers(self) -> dict[str, str]:
        """Return the three headers of docs/specification.md, Rate limits; Reset is when the bucket is full again."""
        return {
            "RateLimit-Limit": str(self.limit.burst),
            "RateLimit-Remaining": str(self.remaining),
            "RateLimit-Reset": str(_seconds(self.full_in_microseconds)),
        }


def take_token(key: str, *, limit: RateLimit) -> BucketState:
    """Take a token from the bucket of a key, if available. Never raises; blocks at most 0.1 s in each second."""
    state = ask_redis(settings.REDIS_URL, partial(_take_in_redis, key, limit))
    return state or memory_buckets.take(key, limit=limit)


def owe_tokens(key: str, count: int, *, limit: RateLimit) -> None:
    """Take tokens that were used already, also if the bucket is empty: later requests wait for them."""
    if ask_redis(settings.REDIS_URL, partial(_take_in_redis, key, limit, owed=count)) is None:
        memory_buckets.take(key, limit=limit, owed=count)


def _take_in_redis(key: str, limit: RateLimit, client: redis.Redis, *, owed: int = 0) -> BucketState:
    # Called by its hash; the script text is sent only when Redis does not have it yet.
    take = client.register_script(TAKE)
    is_allowed, full_in_microseconds = take(
        keys=[f"{KEY_PREFIX}{key}"], args=[limit.step_microseconds, limit.capacity_microseconds, owed]
    )
    return BucketState(limit, bool(is_allowed), full_in_microseconds)


class MemoryBuckets:
    """The buckets of this process alone; new ones evict the least recently used."""

    def __init__(self, max_buckets: int = MAX_MEMORY_BUCKETS) -> None:
        self._max_buckets = max_buckets
        self._full_at: dict[str, int] = {}
        self._lock = threading.Lock()

    def take(self, key: str, *, limit: RateLimit, owed: int = 0) -> BucketState:
        with self._lock:
            now = time.monotonic_ns() // 1000
            full_at = max(self._full_at.pop(key, now), now)
            is_allowed = owed > 0 or full_at + limit.step_microseconds - now <= limit.capacity_microseconds
            if is_allowed:
                full_at += limit.step_microseconds * max(owed, 1)
                full_at = min(full_at, now + 2 * limit.capacity_microseconds)
            self._full_at[key] = full_at
            if len(self._full_at) > self._max_buckets:
                del self._full_at[next(iter(self._full_at))]
            return BucketState(limit, is_allowed, full_at - now)

    def clear(self) -> None:
        self._full_at.clear()


memory_buckets = MemoryBuckets()


def _seconds(microseconds: int) -> int:
    return -(-microseconds // SECOND_MICROSECONDS)
