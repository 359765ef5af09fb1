"""Rules file: recipient rules of the whole installation, which RECIPIENTS names (docs/decisions/0400).

Read once when a process starts, without Django.
"""

from pathlib import Path
from typing import Any

import yaml

from core.api.errors import InvalidFields
from core.workspaces.recipients.caps import MAX_CAPS, MAX_COUNT, MAX_SECONDS, Cap, Exceeding, Per
from core.workspaces.recipients.rules import FIELD, OTHERWISE, RecipientRules, read_rules

MAX_FILE_BYTES = 256 * 1024
FIELDS = ("allow", "otherwise", "redirectTo", "caps")
# The largest value of each number of a cap.
NUMBERS = {"count": MAX_COUNT, "seconds": MAX_SECONDS}
CAP_OPTIONS = {"per": [*Per], "exceeding": [*Exceeding]}


class InvalidRulesFile(Exception):
    """Raised for a file that cannot be used; the text says why."""


def read_rules_file(path: Path) -> RecipientRules:
    """Return the rules of a YAML or JSON file with the fields of `recipientRules`. Raises InvalidRulesFile."""
    values = _fields(_load(path), FIELDS, place=str(path))
    if "otherwise" in values and values["otherwise"] not in OTHERWISE:
        raise InvalidRulesFile(f"{path}: otherwise must be one of {', '.join(OTHERWISE)}.")
    if not isinstance(values.get("redirectTo", ""), str):
        raise InvalidRulesFile(f"{path}: redirectTo must be an address.")
    caps = _list(values, "caps", dict, place=path)
    if len(caps) > MAX_CAPS:
        raise InvalidRulesFile(f"{path}: at most {MAX_CAPS} caps are allowed.")
    try:
        return read_rules(
            allow=_list(values, "allow", str, place=path) if "allow" in values else None,
            otherwise=values.get("otherwise", OTHERWISE[-1]),
            redirect_to=values.get("redirectTo"),
            caps=[_read_cap(cap, place=f"{path}, caps[{number}]") for number, cap in enumerate(caps)],
        )
    except InvalidFields as problem:
        error = problem.members["errors"][0]
        raise InvalidRulesFile(f"{path}: {error['field'].removeprefix(f'{FIELD}.')}: {error['detail']}") from problem


def _load(path: Path) -> Any:
    try:
        with path.open("rb") as file:
            source = file.read(MAX_FILE_BYTES + 1)
        values = yaml.safe_load(source) if len(source) <= MAX_FILE_BYTES else None
    except OSError as error:
        raise InvalidRulesFile(f"{path} cannot be read: {error.strerror}.") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InvalidRulesFile(f"{path} is neither YAML nor JSON: {' '.join(str(error).split())}.") from error
    if not isinstance(values, dict):
        raise InvalidRulesFile(f"{path} must have at most {MAX_FILE_BYTES} bytes, and the fields {', '.join(FIELDS)}.")
    return values


def _fields(values: dict[Any, Any], names: tuple[str, ...], *, place: str) -> dict[str, Any]:
    if unknown := [name for name in values if name not in names]:
        raise InvalidRulesFile(f"{place}: {unknown[0]!r} is unknown. The fields are {', '.join(names)}.")
    return values


def _list(values: dict[str, Any], name: str, kind: type, *, place: Path) -> list[Any]:
    entries = values.get(name, [])
    if isinstance(entries, list) and all(isinstance(entry, kind) for entry in entries):
        return entries
    raise InvalidRulesFile(f"{place}: {name} must be a list of {'texts' if kind is str else 'objects'}.")


def _read_cap(values: dict[Any, Any], *, place: str) -> Cap:
    _fields(values, (*NUMBERS, *CAP_OPTIONS), place=place)
    for name, largest in NUMBERS.items():
        if type(values.get(name)) is not int or not 1 <= values[name] <= largest:
            raise InvalidRulesFile(f"{place}: {name} must be a whole number from 1 to {largest}.")
    for name, options in CAP_OPTIONS.items():
        if name in values and values[name] not in options:
            raise InvalidRulesFile(f"{place}: {name} must be one of {', '.join(options)}.")
    return Cap.from_json(values)
