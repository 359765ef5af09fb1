"""Suppression import files: one address per line, or a CSV column."""

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass

from django.utils.translation import gettext as _

from core.lib.email_addresses import InvalidAddress, parse_recipient
from core.lib.translation import translate
from emails.listing.csv_lines import FORMULA

MAX_BYTES = 1024 * 1024
MAX_ROWS = 10_000
MAX_ERRORS_SHOWN = 20
HEADER_NAMES = ("email", "e-mail", "address", "email address", "recipient")


class UnreadableFile(ValueError):
    """Raised for a file that cannot be imported; the message explains the reason."""


@dataclass(frozen=True)
class AddressFile:
    """The addresses of a file, and errors of lines without a valid address, at most MAX_ERRORS_SHOWN."""

    addresses: tuple[str, ...]
    errors: tuple[str, ...]
    error_count: int


def read_addresses(data: bytes) -> AddressFile:
    """Read UTF-8. Raises UnreadableFile."""
    if len(data) > MAX_BYTES:
        raise UnreadableFile(_("The file is larger than 1 MiB. Split it and import the parts."))
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UnreadableFile(_("The file is not UTF-8 text. Save it as UTF-8 and try again.")) from error
    if "\0" in text:
        raise UnreadableFile(_("The file is not a text file. Choose a CSV or text file."))
    try:
        rows = list(_rows(text))
    except csv.Error as error:
        raise UnreadableFile(_("The file is not valid CSV. Correct it and try again.")) from error
    if len(rows) > MAX_ROWS:
        raise UnreadableFile(_("The file has more than 10,000 rows. Split it and import the parts."))
    return _parse_rows(rows)


def _rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not empty, with their line numbers."""
    reader = csv.reader(io.StringIO(text))
    for row in reader:
        if any(cell.strip() for cell in row):
            yield reader.line_num, [cell.strip() for cell in row]


def _parse_rows(rows: list[tuple[int, list[str]]]) -> AddressFile:
    column, rest = _find_column(rows)
    addresses: list[str] = []
    errors: list[str] = []
    for line, row in rest:
        cell = row[column] if column < len(row) else ""
        try:
            addresses.append(parse_recipient(_unescape_formula(cell)).spec)
        except InvalidAddress as error:
            errors.append(_("Line %(line)s: %(error)s") % {"line": line, "error": translate(str(error))})
    return AddressFile(tuple(addresses), tuple(errors[:MAX_ERRORS_SHOWN]), len(errors))


def _find_column(rows: list[tuple[int, list[str]]]) -> tuple[int, list[tuple[int, list[str]]]]:
    """Return the index of the address column, and the rows without the header."""
    if not rows:
        return 0, rows
    first = [cell.lower() for cell in rows[0][1]]
    named = next((first.index(name) for name in HEADER_NAMES if name in first), None)
    if named is not None:
        return named, rows[1:]
    return next((place for place, cell in enumerate(first) if "@" in cell), 0), rows


def _unescape_formula(cell: str) -> str:
    """Remove the apostrophe that an export adds to cells that a spreadsheet would run as formulas."""
    return cell[1:] if cell.startswith("'") and cell[1:].startswith(FORMULA) else cell
