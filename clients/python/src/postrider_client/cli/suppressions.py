"""`postrider suppressions`: import and export of CSV files of any size."""

import csv
import itertools
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, Any, Optional

import click

from postrider_client.cli.commands import PostriderGroup, pass_invocation
from postrider_client.cli.error_messages import REJECTED
from postrider_client.cli.invocation import Invocation
from postrider_client.cli.output import note
from postrider_client.client import Postrider
from postrider_client.errors import ValidationError

# The most addresses of a request, and of a page.
CHUNK, PAGE = 1000, 100
EMAIL = "email"
# The field of an error in a list of addresses, such as emails[3].
INDEX = re.compile(r"emails\D(\d+)")


@dataclass(frozen=True)
class NumberedAddress:
    """An address and its line in the file."""

    line: int
    email: str


@click.group(cls=PostriderGroup)
def suppressions() -> None:
    """Import and export the addresses that must not be sent to."""


@suppressions.command("import")
@click.argument("file", type=click.File("r", encoding="utf-8-sig"), default="-")
@click.option("--stream", metavar="ID", help="Block only this stream.")
@pass_invocation
def import_suppressions(invocation: Invocation, file: IO[str], stream: Optional[str]) -> None:
    """Suppress the addresses of a CSV file, or of standard input.

    They are in the column `email`, or in the first column if there is none. Invalid addresses are listed on standard
    error, the others are imported, and the exit code is 5.
    """
    imported = rejected = 0
    with invocation.client() as client:
        for chunk in _chunks(read_addresses(file)):
            invalid = _suppress(client, chunk, stream=stream)
            imported, rejected = imported + len(chunk) - len(invalid), rejected + len(invalid)
            if invocation.output.is_table:
                note(f"{imported} imported …")
    message = f"{imported} addresses are suppressed, {rejected} are invalid."
    invocation.output.show_result(message, raw={"imported": imported, "rejected": rejected})
    if rejected:
        sys.exit(REJECTED)


@suppressions.command("export")
@click.option("--reason", metavar="REASON", help="Only this reason, such as bounce.")
@click.option("--search", metavar="TEXT", help="Part of an address.")
@click.option("--stream", metavar="ID", help="Only those of this stream.")
@click.option("--output", "file", type=click.File("w", encoding="utf-8", lazy=True), default="-", metavar="FILE")
@pass_invocation
def export_suppressions(invocation: Invocation, /, *, file: IO[str], **filters: Any) -> None:
    """Write all suppressions as CSV, with the columns email, reason, createdAt and stream.

    The stream is empty for an address that is blocked in the whole workspace.
    """
    with invocation.client() as client:
        rows = iter(client.suppressions.list(**filters, limit=PAGE))
        # The first request comes before the file is opened, so that a refused key empties no file.
        first = list(itertools.islice(rows, 1))
        # Quoted: in some locales a spreadsheet splits cells at semicolons.
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerow((EMAIL, "reason", "createdAt", "stream"))
        writer.writerows(
            (row.email, row.reason, row.raw["createdAt"], row.stream or "") for row in itertools.chain(first, rows)
        )


def read_addresses(file: Iterable[str]) -> Iterator[NumberedAddress]:
    """Yield the addresses of a CSV file, without empty rows."""
    rows = csv.reader(file)
    column: Optional[int] = None
    for row in rows:
        if column is None:
            titles = [title.strip().lower() for title in row]
            column = titles.index(EMAIL) if EMAIL in titles else 0
            if EMAIL in titles:
                continue
        if address := (row[column].strip() if len(row) > column else ""):
            yield NumberedAddress(rows.line_num, address)


def _suppress(client: Postrider, chunk: list[NumberedAddress], *, stream: Optional[str]) -> list[NumberedAddress]:
    """Suppress addresses; list invalid ones on standard error and return them."""
    try:
        client.suppressions.create_many([one.email for one in chunk], stream=stream)
    except ValidationError as error:
        problems = {int(place[1]): one.detail for one in error.errors if (place := INDEX.match(one.field))}
        if not problems:
            raise
        for index, detail in sorted(problems.items()):
            note(f"line {chunk[index].line}: {chunk[index].email}: {detail}")
        rest = [one for index, one in enumerate(chunk) if index not in problems]
        return [chunk[index] for index in problems] + (_suppress(client, rest, stream=stream) if rest else [])
    return []


def _chunks(addresses: Iterable[NumberedAddress]) -> Iterator[list[NumberedAddress]]:
    chunk: list[NumberedAddress] = []
    for address in addresses:
        chunk.append(address)
        if len(chunk) == CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk
