"""The worker's own timer: email leaves even while Redis or Celery beat is down."""

import logging
import threading
from typing import Any

from django.db import close_old_connections

from lib.worker.processor import QueueProcessor
from lib.worker.shutdown import is_stopping, wait_for_stop

log = logging.getLogger("postrider.worker")

EVERY_SECONDS = 2.0


def start_timer(processor: QueueProcessor[Any, Any]) -> None:
    """Run the queue processor now and every two seconds in a separate thread, until the process stops."""
    threading.Thread(target=_tick, args=[processor], name=f"timer-{processor.work.kind}", daemon=True).start()


def _tick(processor: QueueProcessor[Any, Any]) -> None:
    while not is_stopping():
        try:
            processor.run()
        # The thread must survive any error: without it nothing is sent while Redis is down.
        except Exception:
            log.exception("a queue processor failed")
        close_old_connections()
        wait_for_stop(EVERY_SECONDS)
