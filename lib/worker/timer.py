"""The worker's own clock: with Redis or beat down, mail still leaves."""

import logging
import threading
from typing import Any

from django.db import close_old_connections

from lib.worker.processor import Drain
from lib.worker.shutdown import wait

log = logging.getLogger("postrider.drain")

EVERY_SECONDS = 2.0


def start_timer(drain: Drain[Any, Any]) -> None:
    """Run the drain every two seconds in a thread of its own, until the process stops."""
    threading.Thread(target=_tick, args=[drain], name=f"timer-{drain.work.kind}", daemon=True).start()


def _tick(drain: Drain[Any, Any]) -> None:
    while not wait(EVERY_SECONDS):
        try:
            drain.run()
        # Without this thread nothing leaves while Redis is down: it outlives whatever one drain dies of.
        except Exception:
            log.exception("a drain ended")
        close_old_connections()
