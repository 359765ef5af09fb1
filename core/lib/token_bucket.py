"""Token buckets for rate limits, shared in Redis by all processes and, while Redis is down, local to each process.

A bucket is one number: the time at which it is full again (the generic cell rate algorithm). Taking a token moves that
time by one step; the bucket is empty when it is further ahead than the time that all tokens take to refill.
Tokens may be owed for work that is done already. While a bucket owes any, a second number is the time without them: it
tells whether they, or too many requests, have emptied the bucket. See docs/decisions/0014, 0297.
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
local unowed = redis.call('GET', KEYS[2])
local unowed_at = math.min(math.max(tonumber(unowed or full_at), now), full_at)
if owed == 0 and full_at + step - now > capacity then
  return {0, full_at - now, unowed_at + step - now > capacity and 0 or 1}
end
full_at = math.min(full_at + step * math.max(owed, 1), now + 2 * capacity)
local expiry = math.ceil((full_at - now) / 1000)
redis.call('SET', KEYS[1], string.format('%.0f', full_at), 'PX', expiry)
if unowed or owed > 0 then
  if owed == 0 then unowed_at = unowed_at + step end
  redis.call('SET', KEYS[2], string.format('%.0f', unowed_at), 'PX', expiry)
end
return {1, full_at - now, 0}
"""
SECOND_MICROSECONDS = 1_000_000
KEY_PREFIX = "postrider:bucket:"
UNOWED_PREFIX = "postrider:unowed:"
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
    """The state of a bucket after a token was requested.

    is_owing: it has no token, and would have one without those that were owed.
    """

    limit: RateLimit
    is_allowed: bool
    full_in_microseconds: int
    is_owing: bool = False

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
    is_allowed, full_in_microseconds, is_owing = take(
        keys=[f"{KEY_PREFIX}{key}", f"{UNOWED_PREFIX}{key}"],
        args=[limit.step_microseconds, limit.capacity_microseconds, owed],
    )
    return BucketState(limit, bool(is_allowed), full_in_microseconds, bool(is_owing))


class MemoryBuckets:
    """The buckets of this process alone; new ones evict the least recently used."""

    def __init__(self, max_buckets: int = MAX_MEMORY_BUCKETS) -> None:
        self._max_buckets = max_buckets
        self._full_at: dict[str, int] = {}
        self._unowed_at: dict[str, int] = {}
        self._lock = threading.Lock()

    def take(self, key: str, *, limit: RateLimit, owed: int = 0) -> BucketState:
        with self._lock:
            now = time.monotonic_ns() // 1000
            full_at = max(self._full_at.pop(key, now), now)
            unowed_at = min(max(self._unowed_at.pop(key, full_at), now), full_at)
            last = now + limit.capacity_microseconds - limit.step_microseconds
            is_allowed = owed > 0 or full_at <= last
            if is_allowed:
                full_at += limit.step_microseconds * max(owed, 1)
                full_at = min(full_at, now + 2 * limit.capacity_microseconds)
                unowed_at += 0 if owed else limit.step_microseconds
            self._full_at[key] = full_at
            if unowed_at < full_at:
                self._unowed_at[key] = unowed_at
            if len(self._full_at) > self._max_buckets:
                self._forget(next(iter(self._full_at)))
            return BucketState(limit, is_allowed, full_at - now, is_owing=not is_allowed and unowed_at <= last)

    def clear(self) -> None:
        self._full_at.clear()
        self._unowed_at.clear()

    def _forget(self, key: str) -> None:
        del self._full_at[key]
        self._unowed_at.pop(key, None)


memory_buckets = MemoryBuckets()


def _seconds(microseconds: int) -> int:
    return -(-microseconds // SECOND_MICROSECONDS)
