"""Errors in a configuration file, all of them at once."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Union

import click

# The keys and indexes that lead to a value.
ValuePath = tuple[Union[str, int], ...]


@dataclass(frozen=True, order=True)
class Fault:
    """An error.

    line: counted from 1.
    field: the path of the value, such as `domains[0].name`; may be empty.
    """

    line: int
    field: str
    message: str

    def text(self, file: str) -> str:
        subject = f"{self.field}: " if self.field else ""
        return f"{file}:{self.line}: {subject}{self.message}"

    def raw(self, file: str) -> dict[str, Any]:
        return {"file": file, "line": self.line, "field": self.field, "message": self.message}


class InvalidFile(click.ClickException):
    """Raised for a configuration file with errors, before anything is changed."""

    def __init__(self, file: str, faults: Sequence[Fault]) -> None:
        super().__init__(f"{file} has {len(faults)} error{'s' if len(faults) > 1 else ''}; nothing was changed.")
        self.file = file
        self.faults = sorted(set(faults))


def field_name(path: ValuePath) -> str:
    """Return a path as in the errors of the API: `domains[0].name`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")
