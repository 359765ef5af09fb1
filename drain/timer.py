"""The worker's own clock: with Redis or beat down, mail still leaves."""

import threading
from typing import Any

from django.db import close_old_connections

from drain.engine import Drain
from drain.stopping import wait

EVERY_SECONDS = 2.0


def start_timer(drain: Drain[Any, Any]) -> None:
    """Run the drain every two seconds in a thread of its own, until the process stops."""
    threading.Thread(target=_tick, args=[drain], name=f"timer-{drain.work.kind}", daemon=True).start()


def _tick(drain: Drain[Any, Any]) -> None:
    while not wait(EVERY_SECONDS):
        drain.run()
        close_old_connections()
