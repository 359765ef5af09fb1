"""The worker's own timer: email leaves even while Redis or Celery beat is down (docs/decisions/0010)."""

import logging
import threading
import time
from typing import Any

from django.db import close_old_connections

from core.lib.worker.processor import QueueProcessor
from core.lib.worker.shutdown import is_stopping, wait_for_stop

log = logging.getLogger("postrider.worker")


def start_timer(processor: QueueProcessor[Any, Any]) -> None:
    """Run the queue processor now, and whenever nothing has woken it for fallback_seconds, in a separate thread."""
    name = f"timer-{processor.work.kind}"
    threading.Thread(target=_tick, args=[processor], name=name, daemon=True).start()


def _tick(processor: QueueProcessor[Any, Any]) -> None:
    while not is_stopping():
        if (wait := processor.woken_at + processor.fallback_seconds - time.monotonic()) > 0:
            wait_for_stop(wait)
        else:
            _run(processor)


def _run(processor: QueueProcessor[Any, Any]) -> None:
    try:
        processor.run()
    # The thread must survive any error: without it nothing is sent while Redis is down.
    except Exception:
        log.exception("a queue processor failed")
    close_old_connections()
