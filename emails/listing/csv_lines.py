"""CSV lines that no spreadsheet runs as a formula."""

import csv
from collections.abc import Iterable, Iterator, Sequence

# Prefixes that a spreadsheet reads as a formula, including full-width forms (OWASP, CSV injection).
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")  # noqa: RUF001


class _Echo:
    """A file-like object that returns each line instead of storing it."""

    def write(self, line: str) -> str:
        return line


def csv_lines(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield a header line, and one line per row."""
    # Quoted: in some locales a spreadsheet splits cells at semicolons.
    writer = csv.writer(_Echo(), quoting=csv.QUOTE_ALL)
    yield writer.writerow(columns)
    for row in rows:
        # An apostrophe makes the cell a text.
        yield writer.writerow([f"'{cell}" if cell.startswith(FORMULA) else cell for cell in row])
