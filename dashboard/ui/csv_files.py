"""CSV files to download, streamed line by line."""

import itertools
from collections.abc import Iterable, Sequence

from django.http import StreamingHttpResponse

from emails.listing.csv_lines import csv_lines

EXPORT_ROWS = 100_000


def csv_response(filename: str, *, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> StreamingHttpResponse:
    """Return a file of at most EXPORT_ROWS rows, whose cells no spreadsheet runs as a formula."""
    lines = csv_lines(columns, itertools.islice(rows, EXPORT_ROWS))
    headers = {"Content-Disposition": f'attachment; filename="{filename}"'}
    return StreamingHttpResponse(lines, content_type="text/csv; charset=utf-8", headers=headers)
