"""CSV files to download, streamed line by line."""

import csv
import itertools
from collections.abc import Iterable, Iterator, Sequence

from django.http import StreamingHttpResponse

from emails.api.export import safe_cell

EXPORT_ROWS = 100_000


class _Echo:
    """A file-like object that returns each line instead of storing it."""

    def write(self, line: str) -> str:
        return line


def csv_response(filename: str, *, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> StreamingHttpResponse:
    """Return a file of at most EXPORT_ROWS rows, whose cells no spreadsheet runs as a formula."""
    headers = {"Content-Disposition": f'attachment; filename="{filename}"'}
    return StreamingHttpResponse(_lines(columns, rows), content_type="text/csv; charset=utf-8", headers=headers)


def _lines(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    # Quoted: in some locales a spreadsheet splits cells at semicolons.
    writer = csv.writer(_Echo(), quoting=csv.QUOTE_ALL)
    yield writer.writerow(columns)
    for row in itertools.islice(rows, EXPORT_ROWS):
        yield writer.writerow([safe_cell(value) for value in row])
