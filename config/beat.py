"""Celery beat without the application, which it never calls: it needs a quarter of the memory.

python -m config.beat
"""

import json
import logging
import signal
import sys
from typing import Any

from celery.beat import ScheduleEntry, Scheduler, SchedulingError, Service

from config.celery import app
from core.lib.datetimes import format_timestamp
from core.lib.forking import name_process
from core.lib.outage_log import OutageLog

log = logging.getLogger("postrider.processes")
outage = OutageLog(
    logging.getLogger("postrider.redis"),
    down="Redis does not respond; periodic tasks are not sent",
    up="Redis responds again; periodic tasks are sent",
)


class PlainJsonFormatter(logging.Formatter):
    """Formats the fields of config.logs that exist without Django; beat handles no secrets."""

    def format(self, record: logging.LogRecord) -> str:
        line = {"time": format_timestamp(record.created), "level": record.levelname.lower(), "logger": record.name}
        return json.dumps({**line, "message": record.getMessage(), **getattr(record, "data", {})})


class PunctualScheduler(Scheduler):
    """Waits until a task is due. Celery's wait ends 10 ms earlier, and it asks without a pause until then.

    An outage of Redis is a line a minute; Celery logs one with two tracebacks for each task.
    """

    def adjust(self, n: Any, drift: float = 0.0) -> Any:
        return n

    def apply_entry(self, entry: ScheduleEntry, producer: Any = None) -> None:
        """Send a due task. One that cannot be sent is due again after its interval."""
        try:
            self.apply_async(entry, producer=producer, advance=False)
        except SchedulingError as error:
            outage.record_failure(error)
        else:
            outage.record_success()

    def _ensure_connected(self) -> Any:
        """Wait for Redis at the start."""
        return self.connection.ensure_connection(lambda error, _: outage.record_failure(error))


def run_beat() -> None:
    """Send the periodic tasks until the process stops."""
    # Celery's default scheduler keeps a file with state that no schedule here needs.
    service = Service(app, scheduler_cls=PunctualScheduler)
    log.info("beat is ready", extra={"data": {"tasks": len(app.conf.beat_schedule)}})
    service.start()


if __name__ == "__main__":
    handler = logging.StreamHandler()
    handler.setFormatter(PlainJsonFormatter())
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    log.setLevel(logging.INFO)
    name_process("beat")
    # The kernel ignores a signal without a handler for the first process of a container.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    run_beat()
