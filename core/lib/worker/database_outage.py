"""Log records of an outage of the database: all parts of a process share one state (docs/decisions/0171).

Code that repeats its work until the database responds reports to `database_outage`. OutageFilter does so for all other
records of such errors, as those of Django and Celery, which are a traceback for each request and each task.
"""

import logging

from core.lib.outage_log import OutageLog
from core.lib.sql import is_outage

log = logging.getLogger("postrider.database")
database_outage = OutageLog(
    log, down="the database does not respond", up="the database responds again", level=logging.ERROR
)


class OutageFilter(logging.Filter):
    """Counts the records of an outage of the database, and drops them."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if error is None or record.name == log.name or not is_outage(error):
            return True
        database_outage.record_failure(error, has_traceback=True)
        return False
