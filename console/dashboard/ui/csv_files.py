"""CSV files to download, made line by line."""

import itertools
from collections.abc import Iterable, Sequence
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from console.dashboard.auth.current_workspace import current_workspace
from core.api.errors import RateLimitExceeded
from core.api.transfers import csv_file
from emails.listing.csv_lines import csv_lines

EXPORT_ROWS = 100_000


def csv_response(
    request: HttpRequest, filename: str, *, columns: Sequence[str], rows: Iterable[Sequence[str]]
) -> HttpResponseBase:
    """Return a file of at most EXPORT_ROWS rows, whose cells no spreadsheet runs as a formula."""
    return download(request, filename, csv_lines(columns, itertools.islice(rows, EXPORT_ROWS)))


def download(request: HttpRequest, filename: str, lines: Iterable[str]) -> HttpResponseBase:
    """Return a file, or the reason why the workspace has to wait for others of its own."""
    headers = {"Content-Disposition": f'attachment; filename="{filename}"'}
    try:
        return csv_file(request, lines, workspace_id=current_workspace(request).id, headers=headers)
    except RateLimitExceeded as problem:
        return HttpResponse(str(problem.detail), content_type="text/plain", status=HTTPStatus.TOO_MANY_REQUESTS)
