"""Which worker processes are there: each says so in Redis, and what keeps its mail from leaving.

For people to look at; nothing is decided by it. Without Redis nobody is seen, and mail flows all the same.
"""

import json
import os
import socket
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass

import redis
from django.conf import settings

from lib.redis_client import ask_redis
from lib.worker.shutdown import wait

EVERY_SECONDS = 10.0
EXPIRES_SECONDS = 35
PREFIX = "postrider:worker:"


@dataclass(frozen=True)
class Worker:
    """One process. trouble: why its transport lets nothing leave, empty for none."""

    host: str
    process: int
    trouble: str


def start_presence(trouble: Callable[[], str | None]) -> None:
    """Say every ten seconds that this process is there, until it stops."""
    threading.Thread(target=_tick, args=[trouble], name="presence", daemon=True).start()


def say_present(trouble: str | None) -> None:
    worker = Worker(socket.gethostname(), os.getpid(), trouble or "")
    name = f"{PREFIX}{worker.host}:{worker.process}"
    ask_redis(settings.REDIS_URL, lambda client: client.set(name, json.dumps(asdict(worker)), ex=EXPIRES_SECONDS))


def present_workers() -> list[Worker]:
    found = ask_redis(settings.REDIS_URL, _read) or []
    return sorted(found, key=lambda worker: (worker.host, worker.process))


def _read(client: redis.Redis) -> list[Worker]:
    names = list(client.scan_iter(match=f"{PREFIX}*", count=1000))
    return [Worker(**json.loads(text)) for text in client.mget(names) if text] if names else []


def _tick(trouble: Callable[[], str | None]) -> None:
    say_present(trouble())
    while not wait(EVERY_SECONDS):
        say_present(trouble())
