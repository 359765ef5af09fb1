"""Request recorder: a row for each request with an API key, written in batches (docs/decisions/0265)."""

import logging
import re
import time
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, NamedTuple

from django.db import Error, InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from core.api import latency
from core.api.admission import API_PREFIXES
from core.api.request_ids import current_request_id
from core.lib.ids import to_uuid
from core.lib.sql import run_prepared
from core.lib.worker.write_buffer import WriteBuffer
from core.workspaces.models import ApiKey

CAPACITY = 2_000
# Requests of one workspace in a buffer, so that one with many does not drop those of others.
SHARE = 1_000
BATCH_SIZE = 500
GATHER_SECONDS = 1.0
MAX_PATH_LENGTH = 200
# Other names of query parameters may be values.
PARAMETER = re.compile(r"[A-Za-z_]{1,30}(\[[A-Za-z_]{0,30}\])?")
INSERT = """
INSERT INTO request_log_apirequest
       (id, workspace_id, key_id, created_at, method, path, status, milliseconds, code, email_id)
SELECT * FROM unnest(%s::uuid[], %s::uuid[], %s::uuid[], %s::timestamptz[], %s::text[], %s::text[], %s::int[],
                     %s::int[], %s::text[], %s::uuid[])
    ON CONFLICT DO NOTHING
"""

log = logging.getLogger("postrider.request_log")


class RequestRow(NamedTuple):
    """The values of an ApiRequest, in the order of INSERT."""

    id: str
    workspace_id: str
    key_id: str
    created_at: datetime
    method: str
    path: str
    status: int
    milliseconds: int
    code: str
    email_id: str | None


def write_rows(rows: list[RequestRow]) -> None:
    """Write a batch. Raises OperationalError or InterfaceError while the database is unreachable."""
    try:
        run_prepared(INSERT, [list(column) for column in zip(*map(_stored, rows), strict=True)])
    except (OperationalError, InterfaceError):
        raise
    except Error:
        log.exception("requests could not be written")


def _stored(row: RequestRow) -> tuple[Any, ...]:
    email_id = to_uuid(row.email_id) if row.email_id else None
    ids = to_uuid(row.id, prefix="req_"), to_uuid(row.workspace_id, prefix="ws_"), to_uuid(row.key_id, prefix="key_")
    return *ids, *row[3:9], email_id


class RequestRecorder(WriteBuffer[RequestRow]):
    """The buffer of this process. Rows beyond its capacity or the share of a workspace are dropped and counted."""

    def __init__(self) -> None:
        super().__init__(
            "requests",
            write_rows,
            log=log,
            capacity=CAPACITY,
            batch_size=BATCH_SIZE,
            gather_seconds=GATHER_SECONDS,
        )
        self._shares: Counter[str] = Counter()

    def add(self, row: RequestRow) -> None:
        if self._shares[row.workspace_id] >= SHARE:
            self.drop(reason="share")
            return
        self._shares[row.workspace_id] += 1
        super().add(row)

    def drop(self, *, count: int = 1, reason: str = "buffer") -> None:
        latency.count_unlogged(count, reason=reason)
        super().drop(count=count, reason=reason)

    def flush(self) -> bool:
        is_written = super().flush()
        if is_written:
            self._shares.clear()
        return is_written


recorder = RequestRecorder()


class RequestLogMiddleware:
    """Adds requests to the log of their workspace. Those without a valid key belong to no workspace."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not request.path_info.startswith(API_PREFIXES):
            return self.get_response(request)
        started = time.perf_counter()
        response = self.get_response(request)
        key = getattr(request, "api_key", None)
        if isinstance(key, ApiKey):
            recorder.add(read_row(request, response, key, seconds=time.perf_counter() - started))
        return response


def read_row(request: HttpRequest, response: HttpResponseBase, key: ApiKey, *, seconds: float) -> RequestRow:
    return RequestRow(
        current_request_id() or "",
        key.workspace_id,
        key.id,
        datetime.now(UTC),
        str(request.method)[:10],
        redacted_path(request),
        response.status_code,
        round(seconds * 1000),
        getattr(response, "problem_code", "")[:50],
        getattr(request, "email_id", None),
    )


def redacted_path(request: HttpRequest) -> str:
    """Return the path and the names of the query parameters, such as `/v1/suppressions/…?stream`.

    A segment with an at sign, also an encoded one, is an address.
    """
    path = request.path_info
    if "@" in path or "%" in path:
        path = "/".join("…" if "@" in segment or "%" in segment else segment for segment in path.split("/"))
    if request.META.get("QUERY_STRING"):
        path += "?" + "&".join(name if PARAMETER.fullmatch(name) else "…" for name in request.GET)
    return path.replace("\0", "")[:MAX_PATH_LENGTH]
