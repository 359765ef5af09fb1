"""Hit buffer: opens and clicks are recorded in batches, and responses do not wait for the database.

See core.lib.worker.write_buffer and docs/decisions/0026.
"""

import logging

from django.db import InterfaceError, OperationalError

from core.lib.worker.write_buffer import WriteBuffer
from emails.feedback.opens_and_clicks import Hit, record_hits

CAPACITY = 10_000
BATCH_SIZE = 100
GATHER_SECONDS = 0.2

log = logging.getLogger("postrider.tracking")


class HitRecorder(WriteBuffer[Hit]):
    def __init__(self) -> None:
        super().__init__(
            "hits", _record, log=log, capacity=CAPACITY, batch_size=BATCH_SIZE, gather_seconds=GATHER_SECONDS
        )


def _record(hits: list[Hit]) -> None:
    """Record a batch. If it fails, record each hit separately, so that only the bad one is lost."""
    try:
        record_hits(hits)
    except (OperationalError, InterfaceError):
        raise
    except Exception:  # noqa: BLE001 - an exception would end the thread
        for hit in hits:
            _record_alone(hit)


def _record_alone(hit: Hit) -> None:
    try:
        record_hits([hit])
    except (OperationalError, InterfaceError):
        raise
    except Exception:
        log.exception("a hit could not be recorded")


recorder = HitRecorder()
