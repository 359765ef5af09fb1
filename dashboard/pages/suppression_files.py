"""Addresses in a file: one a line, or a column of a CSV."""

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass

from django.utils.translation import gettext as _

from emails.api.export import FORMULA
from lib.email_addresses import InvalidAddress, parse_address

MAX_BYTES = 1024 * 1024
MAX_ROWS = 10_000
MAX_FAULTS_TOLD = 20
NAMES = ("email", "e-mail", "address", "email address", "recipient")


class UnreadableFile(ValueError):
    """Raised with a sentence for a file of which nothing is taken."""


@dataclass(frozen=True)
class Found:
    """The addresses of a file, and the lines that hold none: their numbers and why, MAX_FAULTS_TOLD at most."""

    addresses: tuple[str, ...]
    faults: tuple[str, ...]
    fault_count: int


def read_addresses(data: bytes) -> Found:
    """Read UTF-8. Raises UnreadableFile."""
    if len(data) > MAX_BYTES:
        raise UnreadableFile(_("The file has more than 1 MiB."))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableFile(_("The file is not UTF-8.")) from error
    if "\0" in text:
        raise UnreadableFile(_("The file is not text."))
    try:
        rows = list(_rows(text))
    except csv.Error as error:
        raise UnreadableFile(_("The file is not CSV.")) from error
    if len(rows) > MAX_ROWS:
        raise UnreadableFile(_("The file has more than 10,000 rows."))
    return _read(rows)


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """Return the rows that hold anything, each with its line."""
    reader = csv.reader(io.StringIO(text))
    for row in reader:
        if any(cell.strip() for cell in row):
            yield reader.line_num, [cell.strip() for cell in row]


def _read(rows: list[tuple[int, list[str]]]) -> Found:
    column, rest = _column(rows)
    addresses: list[str] = []
    faults: list[str] = []
    for line, row in rest:
        cell = row[column] if column < len(row) else ""
        try:
            addresses.append(parse_address(_undone(cell)).spec)
        except InvalidAddress as error:
            faults.append(_("Line %(line)s: %(why)s") % {"line": line, "why": error})
    return Found(tuple(addresses), tuple(faults[:MAX_FAULTS_TOLD]), len(faults))


def _column(rows: list[tuple[int, list[str]]]) -> tuple[int, list[tuple[int, list[str]]]]:
    """Return which column has the addresses, and the rows without the line of names."""
    if not rows:
        return 0, rows
    first = [cell.lower() for cell in rows[0][1]]
    named = next((first.index(name) for name in NAMES if name in first), None)
    if named is not None:
        return named, rows[1:]
    return next((place for place, cell in enumerate(first) if "@" in cell), 0), rows


def _undone(cell: str) -> str:
    """Take off the apostrophe that an export puts before what a spreadsheet would run."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(FORMULA) else cell
