"""Heartbeats of worker processes in Redis, with the reason if a worker cannot send.

For display only; no decision depends on them. Without Redis no worker is listed, but emails are still sent.
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
from lib.worker.shutdown import wait_for_stop

EVERY_SECONDS = 10.0
EXPIRES_SECONDS = 35
PREFIX = "postrider:worker:"


@dataclass(frozen=True)
class WorkerHeartbeat:
    """One worker process. trouble: why its transport cannot send; empty if it can."""

    host: str
    process: int
    trouble: str


def start_heartbeat(trouble: Callable[[], str | None]) -> None:
    """Send a heartbeat every ten seconds until the process stops."""
    threading.Thread(target=_tick, args=[trouble], name="heartbeat", daemon=True).start()


def send_heartbeat(trouble: str | None) -> None:
    heartbeat = WorkerHeartbeat(socket.gethostname(), os.getpid(), trouble or "")
    name = f"{PREFIX}{heartbeat.host}:{heartbeat.process}"
    ask_redis(settings.REDIS_URL, lambda client: client.set(name, json.dumps(asdict(heartbeat)), ex=EXPIRES_SECONDS))


def live_workers() -> list[WorkerHeartbeat]:
    """Return the heartbeats of the last 35 seconds, by host and process."""
    heartbeats = ask_redis(settings.REDIS_URL, _read) or []
    return sorted(heartbeats, key=lambda worker: (worker.host, worker.process))


def _read(client: redis.Redis) -> list[WorkerHeartbeat]:
    names = list(client.scan_iter(match=f"{PREFIX}*", count=1000))
    return [WorkerHeartbeat(**json.loads(text)) for text in client.mget(names) if text] if names else []


def _tick(trouble: Callable[[], str | None]) -> None:
    send_heartbeat(trouble())
    while not wait_for_stop(EVERY_SECONDS):
        send_heartbeat(trouble())
