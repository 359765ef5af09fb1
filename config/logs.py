"""Structured logs: one JSON object per line, with secrets removed."""

import json
import logging
import re
import traceback

from core.api.request_ids import current_request_id
from core.lib.datetimes import format_timestamp

# API keys, webhook secrets, authorization headers, URLs with passwords, PEM blocks.
SECRETS = re.compile(
    r"pr_[0-9A-Za-z]{22}_[0-9A-Za-z]+|whsec_[0-9A-Za-z+/=]+|(?i:bearer\s+)\S+|(?<=://)[^\s/@]{1,200}@"
    r"|-----BEGIN [A-Z ]{1,30}-----[^-]*-----END [A-Z ]{1,30}-----"
)
CUT = "[cut]"


# The names of a line that `data` must not have.
FIXED_FIELDS = frozenset({"time", "level", "logger", "message", "requestId", "exception"})


class ExceptionFilter(logging.Filter):
    """Drops records without an exception: Django logs each response from 500 on, such as an intended 501 or 503."""

    def filter(self, record: logging.LogRecord) -> bool:
        return bool(record.exc_info)


class JsonFormatter(logging.Formatter):
    """Formats FIXED_FIELDS and the `extra={"data": {…}}` of the call."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": format_timestamp(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "requestId": current_request_id(),
            **getattr(record, "data", {}),
        }
        if record.exc_info and record.exc_info[0]:
            line["exception"] = "".join(traceback.format_exception(*record.exc_info))
        present = {name: value for name, value in line.items() if value is not None}
        return SECRETS.sub(CUT, json.dumps(present, ensure_ascii=False, default=str))
