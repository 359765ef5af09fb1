"""Output of commands: tables on a terminal, JSON otherwise."""

import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Optional

import click
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

# Subjects and replies of mail servers are not trusted: escape sequences would control the terminal, and marks of the
# writing direction would reorder its text.
CONTROLS = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
STYLES = {
    **dict.fromkeys(("delivered", "opened", "clicked", "verified", "succeeded", "processed", "replied"), "green"),
    **dict.fromkeys(("queued", "scheduled", "sending", "sent", "pending", "stored", "received"), "cyan"),
    **dict.fromkeys(("deferred", "suppressed", "unsubscribed", "cancelled", "missing"), "yellow"),
    **dict.fromkeys(("blocked", "unreadable"), "yellow"),
    **dict.fromkeys(("bounced", "complained", "failed", "mismatch"), "red"),
}


@dataclass(frozen=True)
class Column:
    """A column of a table.

    value: the cell of an item.
    is_whole: a cell is never divided, such as an id to copy.
    """

    title: str
    value: Callable[[Any], Any]
    is_whole: bool = False


@dataclass(frozen=True)
class Output:
    """Writes results to standard output and notes to standard error."""

    is_json: bool

    @cached_property
    def console(self) -> Console:
        return Console(highlight=False, soft_wrap=False)

    @property
    def is_table(self) -> bool:
        return self.console.is_terminal and not self.is_json

    def show_rows(
        self, items: Iterable[Any], columns: Iterable[Column], *, raw: Callable[[Any], Any] = lambda item: item.raw
    ) -> None:
        """Print items as a table, or as a JSON array of their `raw` values."""
        items, columns = list(items), list(columns)
        if not self.is_table:
            write_json([raw(item) for item in items])
            return
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
        rows = [[cell(column.value(item)) for column in columns] for item in items]
        for number, column in enumerate(columns):
            widths = [row[number].cell_len for row in rows] if column.is_whole else []
            table.add_column(column.title, overflow="fold", min_width=max(widths, default=None))
        for row in rows:
            table.add_row(*row)
        self.console.print(table if items else Text("Nothing found.", "dim"))

    def show_fields(self, fields: Mapping[str, Any], *, raw: Any) -> None:
        """Print one item as titles and values, without empty ones, or as a JSON object."""
        if not self.is_table:
            write_json(raw)
            return
        table = Table.grid(padding=(0, 2))
        for title, value in fields.items():
            if value not in (None, "", []):
                table.add_row(Text(title, "bold"), cell(value))
        self.console.print(table)

    def show_result(self, message: str, *, raw: Any) -> None:
        """Print that a command was successful: the message, or a JSON object."""
        if self.is_table:
            self.console.print(Text.assemble(("✓ ", "green"), plain_text(message)))
        else:
            write_json(raw)

    @staticmethod
    def warn(message: str) -> None:
        """Print a warning, which JSON output repeats from the response, on standard error."""
        click.secho("warning: ", fg="yellow", nl=False, err=True)
        note(message)

    def show_line(self, *cells: Any, raw: Any) -> None:
        """Print an item of a stream at once: its cells, or one line of JSON."""
        if self.is_table:
            self.console.print(Text("  ").join(cell(one) for one in cells))
        else:
            write_json_line(raw)


def note(message: str) -> None:
    """Print a line for people on standard error, such as progress."""
    click.echo(plain_text(message), err=True)


def cell(value: Any) -> Text:
    """Return a value as a cell: datetimes in local time, statuses in colour."""
    if isinstance(value, Text):
        return value
    if isinstance(value, datetime):
        return Text(f"{value.astimezone():%Y-%m-%d %H:%M:%S}", "dim")
    if isinstance(value, (list, tuple)):
        return Text(", ".join(plain_text(one) for one in value))
    text = plain_text(value)
    return Text(text, STYLES.get(text, ""))


def plain_text(value: Optional[object]) -> str:
    """Return text without characters that control a terminal."""
    return CONTROLS.sub("\N{REPLACEMENT CHARACTER}", "" if value is None else str(value))


def plain_lines(text: Optional[str]) -> Optional[Text]:
    """Return a text of several lines, such as that of an email, as a cell, and None for an empty one."""
    return Text("\n".join(plain_text(line) for line in text.splitlines())) if text else None


def write_json(value: Any) -> None:
    click.echo(_json_text(value, indent=2))


def write_json_line(value: Any) -> None:
    click.echo(_json_text(value))
    sys.stdout.flush()


def _json_text(value: Any, *, indent: Optional[int] = None) -> str:
    """Return JSON in which all characters that control a terminal are escaped; json.dumps leaves some of them."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    return CONTROLS.sub(lambda match: match[0] if match[0] == "\n" else f"\\u{ord(match[0]):04x}", text)
