"""Token buckets, kept in Redis for all processes and, while Redis is away, in the memory of each.

A bucket is one number: the moment at which it is full again (the generic cell rate algorithm). A token
that is taken moves that moment by one step; the bucket is empty when it lies further ahead than all
tokens take to grow.
"""

import threading
import time
from dataclasses import dataclass
from functools import partial

import redis
from django.conf import settings

from lib.redis_client import ask_redis

# The time is Redis' own: the clocks of many hosts disagree. A clock that was set back must not close a
# bucket for longer than it takes to fill. The key expires when the bucket is full.
TAKE = """
local clock = redis.call('TIME')
local now = clock[1] * 1000000 + clock[2]
local step, room = tonumber(ARGV[1]), tonumber(ARGV[2])
local full_at = tonumber(redis.call('GET', KEYS[1]) or now)
full_at = math.min(math.max(full_at, now), now + room)
if full_at + step - now > room then
  return {0, full_at - now}
end
full_at = full_at + step
redis.call('SET', KEYS[1], string.format('%.0f', full_at), 'PX', math.ceil((full_at - now) / 1000))
return {1, full_at - now}
"""
SECOND = 1_000_000
KEY_PREFIX = "postrider:bucket:"
MEMORY_SIZE = 10_000


@dataclass(frozen=True)
class Limit:
    """Tokens that grow a second, and how many the bucket holds."""

    per_second: float
    burst: int

    @property
    def step(self) -> int:
        """Microseconds that one token takes to grow."""
        return round(SECOND / self.per_second)

    @property
    def room(self) -> int:
        """Microseconds that an empty bucket takes to fill."""
        return self.burst * self.step


@dataclass(frozen=True)
class Level:
    """How a bucket stands after a token was asked for; full_in is in microseconds."""

    limit: Limit
    is_allowed: bool
    full_in: int

    @property
    def remaining(self) -> int:
        return (self.limit.room - self.full_in) // self.limit.step

    @property
    def retry_after_seconds(self) -> int:
        """Whole seconds until there is a token again, at least 1."""
        return max(_seconds(self.full_in + self.limit.step - self.limit.room), 1)

    def headers(self) -> dict[str, str]:
        """Return the three headers of CONTRACT section 1; Reset is when the bucket is full again."""
        return {
            "RateLimit-Limit": str(self.limit.burst),
            "RateLimit-Remaining": str(self.remaining),
            "RateLimit-Reset": str(_seconds(self.full_in)),
        }


def take_token(key: str, *, limit: Limit) -> Level:
    """Take a token from the bucket of a key, if there is one. Never fails, waits 0.1 s a second at most."""
    level = ask_redis(settings.REDIS_URL, partial(_take_in_redis, key, limit))
    return level or memory.take(key, limit=limit)


def _take_in_redis(key: str, limit: Limit, client: redis.Redis) -> Level:
    # Called by its hash; the text is sent once, when Redis does not know it yet.
    take = client.register_script(TAKE)
    is_allowed, full_in = take(keys=[f"{KEY_PREFIX}{key}"], args=[limit.step, limit.room])
    return Level(limit, bool(is_allowed), full_in)


class MemoryBuckets:
    """The same buckets in this process alone; the longest unused ones make room for new ones."""

    def __init__(self, size: int = MEMORY_SIZE) -> None:
        self._size = size
        self._full_at: dict[str, int] = {}
        self._lock = threading.Lock()

    def take(self, key: str, *, limit: Limit) -> Level:
        with self._lock:
            now = time.monotonic_ns() // 1000
            full_at = max(self._full_at.pop(key, now), now)
            is_allowed = full_at + limit.step - now <= limit.room
            if is_allowed:
                full_at += limit.step
            self._full_at[key] = full_at
            if len(self._full_at) > self._size:
                del self._full_at[next(iter(self._full_at))]
            return Level(limit, is_allowed, full_at - now)

    def clear(self) -> None:
        self._full_at.clear()


memory = MemoryBuckets()


def _seconds(microseconds: int) -> int:
    return -(-microseconds // SECOND)
