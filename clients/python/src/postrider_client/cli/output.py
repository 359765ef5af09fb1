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
from rich.padding import Padding
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


# Characters of a subject or an address that a column must have room for.
LEAST_WIDTH = 24


@dataclass(frozen=True)
class Column:
    """A column of a table.

    value: the cell of an item.
    is_whole: a cell is never divided, such as an id to copy.
    is_text: a cell may be long, such as a subject. On a terminal that is too narrow, it is below the others.
    """

    title: str
    value: Callable[[Any], Any]
    is_whole: bool = False
    is_text: bool = False


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
        rows = [[cell(column.value(item)) for column in columns] for item in items]
        widths = [max((row[number].cell_len for row in rows), default=0) for number in range(len(columns))]
        if not items:
            self.console.print(Text("Nothing found.", "dim"))
        elif self._is_narrow(columns, widths):
            self._show_in_two_lines(rows, columns, widths)
        else:
            table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
            for column, width in zip(columns, widths):
                table.add_column(column.title, overflow="fold", min_width=width if column.is_whole else None)
            for row in rows:
                table.add_row(*row)
            self.console.print(table)

    def _is_narrow(self, columns: list[Column], widths: list[int]) -> bool:
        """Return whether the texts would have less than LEAST_WIDTH beside the other columns."""
        texts = [width for column, width in zip(columns, widths) if column.is_text]
        room = self.console.width - sum(widths) + sum(texts) - 3 * len(columns)
        return bool(texts) and sum(texts) > room < LEAST_WIDTH * len(texts)

    def _show_in_two_lines(self, rows: Iterable[list[Text]], columns: list[Column], widths: list[int]) -> None:
        """Print the texts of each row below its other cells: beside them, they would have a few characters a line."""
        shown = [number for number, column in enumerate(columns) if not column.is_text]
        texts = [number for number, column in enumerate(columns) if column.is_text]
        for row in [[Text(column.title, "bold") for column in columns], *rows]:
            for number in shown:
                row[number].align("left", max(widths[number], len(columns[number].title)))
            self.console.print(Text("  ").join(row[number] for number in shown))
            below = Text(" \N{MIDDLE DOT} ", "dim").join(row[number] for number in texts if row[number])
            self.console.print(Padding(below, (0, 0, 0, 2)))

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
