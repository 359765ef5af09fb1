"""Heartbeats of worker processes in Redis, with the reason if a worker cannot send.

For display only; no decision depends on them. Without Redis no worker is listed, but emails are still sent.
"""

import json
import os
import socket
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass

from django.conf import settings

from core.lib.worker.reports import read_reports, send_report
from core.lib.worker.shutdown import wait_for_stop

EVERY_SECONDS = 10.0
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
    send_report(settings.REDIS_URL, json.dumps(asdict(heartbeat)), prefix=PREFIX)


def live_workers() -> list[WorkerHeartbeat]:
    """Return the heartbeats of the last 35 seconds, by host and process."""
    heartbeats = [WorkerHeartbeat(**json.loads(text)) for text in read_reports(settings.REDIS_URL, prefix=PREFIX)]
    return sorted(heartbeats, key=lambda worker: (worker.host, worker.process))


def _tick(trouble: Callable[[], str | None]) -> None:
    send_heartbeat(trouble())
    while not wait_for_stop(EVERY_SECONDS):
        send_heartbeat(trouble())
