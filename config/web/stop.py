"""Graceful stop of the web server: on SIGTERM, `/servingz` fails first, so that load balancers choose other servers.

New connections are accepted until it has noticed (docs/decisions/0091).
"""

import mmap
import queue
import signal
import time
from contextlib import suppress
from typing import Any

from django.conf import settings

RUNNING, WAITING_FOR_PROXY, STOPPING = range(3)
# Shared by the processes of the server, which are forked after this module is loaded.
_stage = mmap.mmap(-1, 1)


def is_stopping() -> bool:
    return _stage[0] != RUNNING


def stage() -> int:
    """Return the stage of the stop: RUNNING, WAITING_FOR_PROXY or STOPPING."""
    return _stage[0]


def stop_gracefully(arbiter: Any) -> None:
    """Handle SIGTERM in gunicorn's arbiter. Raises StopIteration, for the arbiter to stop its processes."""
    _stage[0] = WAITING_FOR_PROXY
    _wait_for_proxy(arbiter.SIG_QUEUE)
    _stage[0] = STOPPING
    raise StopIteration


def _wait_for_proxy(signals: "queue.SimpleQueue[int]") -> None:
    """Wait for WEB_STOP_DELAY seconds; SIGINT or SIGQUIT ends the wait."""
    deadline = time.monotonic() + settings.WEB_STOP_DELAY
    while (remaining := deadline - time.monotonic()) > 0:
        with suppress(queue.Empty):
            number = signals.get(timeout=remaining)
            if number in {signal.SIGINT, signal.SIGQUIT}:
                signals.put(number)
                return
