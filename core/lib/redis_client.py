"""Redis calls that never block for long: a server that does not respond is skipped for a second.

The client's default retries cost 3 to 6 s per call while Redis is down, which is never worth it here: a lost wake-up
costs five seconds at most, a lost token bucket a few requests too many.
"""

import functools
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote, unquote, urlsplit

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry
from redis.sentinel import Sentinel

from core.lib.outage_log import OutageLog

log = logging.getLogger("postrider.redis")
outage = OutageLog(log, down="Redis does not respond; continuing without it", up="Redis responds again")

TIMEOUT_SECONDS = 0.1
PAUSE_SECONDS = 1.0

SENTINEL = "redis+sentinel"
SENTINEL_PORT = 26379

Reply = TypeVar("Reply")

# Times by URL, so that one failing server does not disable another.
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


@dataclass(frozen=True)
class SentinelUrl:
    """The parts of redis+sentinel://user:password@host:26379,host:26379/service/0?sentinel_password=…

    service: the name under which the sentinels monitor Redis.
    account: user and password of Redis, an empty string where not given.
    See docs/decisions/0252.
    """

    sentinels: tuple[tuple[str, int], ...]
    service: str
    database: int
    account: tuple[str, str]
    sentinel_password: str | None

    @classmethod
    def parse(cls, url: str) -> "SentinelUrl":
        """Raises ValueError with a message for the operator, which has no secret."""
        parts = urlsplit(url)
        service, _, database = parts.path.strip("/").partition("/")
        parameters = dict(parse_qsl(parts.query))
        sentinel_password = parameters.pop("sentinel_password", None)
        if parameters:
            raise ValueError(f"the parameter {next(iter(parameters))} is not supported. Use only sentinel_password.")
        try:
            hosts = [urlsplit(f"//{host}") for host in parts.netloc.rpartition("@")[2].split(",")]
            sentinels = tuple((host.hostname or "", host.port or SENTINEL_PORT) for host in hosts)
            number = int(database or "0")
        except ValueError:
            sentinels, number = (), 0
        if not (sentinels and service and all(host for host, _ in sentinels)):
            raise ValueError("must be like redis+sentinel://:password@host1:26379,host2:26379/service/0.")
        account = unquote(parts.username or ""), unquote(parts.password or "")
        return cls(sentinels, service, number, account, sentinel_password)


def connect_redis(url: str, **options: Any) -> redis.Redis:
    """Return a client of the Redis at `url`, or of the one that sentinels name as the primary.

    options: options of redis-py.
    """
    if not url.startswith(SENTINEL):
        return redis.Redis.from_url(url, **options)
    parts = SentinelUrl.parse(url)
    username, password = (text or None for text in parts.account)
    of_sentinels = {**options, "password": parts.sentinel_password}
    manager = Sentinel(parts.sentinels, sentinel_kwargs=of_sentinels)  # type: ignore[no-untyped-call]
    options |= {"db": parts.database, "username": username, "password": password}
    client: redis.Redis = manager.master_for(parts.service, **options)  # type: ignore[no-untyped-call]
    return client


def broker_settings(url: str) -> tuple[str, dict[str, Any]]:
    """Return the URL of Celery's broker and its transport options, without the timeouts."""
    if not url.startswith(SENTINEL):
        return url, {}
    try:
        parts = SentinelUrl.parse(url)
    except ValueError:
        # config.checks reports it; it must not prevent the settings from loading.
        return "redis://unset", {}
    account = ":".join(quote(text, safe="") for text in parts.account)
    urls = [f"sentinel://{account}@{host}:{port}/{parts.database}" for host, port in parts.sentinels]
    timeouts = {"socket_timeout": 1, "socket_connect_timeout": 1, "retry": Retry(NoBackoff(), 0)}
    sentinels = {"password": parts.sentinel_password, **timeouts}
    return ";".join(urls), {"master_name": parts.service, "sentinel_kwargs": sentinels}


@functools.cache
def _client(url: str) -> redis.Redis:
    return connect_redis(
        url, socket_timeout=TIMEOUT_SECONDS, socket_connect_timeout=TIMEOUT_SECONDS, retry=Retry(NoBackoff(), 0)
    )
