"""Receivers file: the table of receivers that Postrider has, and the operator's changes to it (docs/decisions/0345).

Read once when a process starts.
"""

import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from core.delivery.receivers import DEFAULT, HOST_NAME, Receiver, ReceiverTable
from core.lib.network.public_suffixes import public_suffixes

TABLE = Path(__file__).with_name("receivers.yaml")
KEY = re.compile(r"[a-z0-9-]{1,30}")
MAILBOX_DOMAIN = re.compile(r"(?=.{1,253}\Z)[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})*")
REPORTER = re.compile(r"[^A-Z\n]{2,100}")
WORDS = re.compile(r"[^A-Z\n]{4,100}")
MAX_FILE_BYTES = 256 * 1024
MAX_RECEIVERS = 1_000
# The members of an entry: whole numbers, with their field and largest value; lists, with the form of an element and
# its description; and texts, with their greatest length.
NUMBERS = {
    "connections": ("connections", 1_000),
    "messagesPerConnection": ("messages_per_connection", 100_000),
    "perMinute": ("per_minute", 1_000_000),
}
LISTS = {
    "mx": (HOST_NAME, "must be the name of a host, or one below which hosts are, such as mx.example.com"),
    "domains": (MAILBOX_DOMAIN, "must be a domain, or a name without a dot for the domains in all countries"),
    "replies": (WORDS, "must have 4 to 100 characters, none of them in upper case"),
    "reports": (REPORTER, "must have 2 to 100 characters, none of them in upper case"),
}
TEXTS = {"name": 60, "source": 300, "reason": 300}
TLS = ("opportunistic", "required")
# The messages of each day that a new address sends.
WARM_UP, MAX_DAYS, MAX_PER_DAY = "warmUp", 100, 1_000_000_000
MEMBERS = ("name", *NUMBERS, WARM_UP, "tls", *LISTS, "source", "reason")
# libyaml is several times as fast. A package that was built without it has only the loader in Python.
Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
# The fields of an entry that differ from those of Receiver, by name.
Fields = dict[str, Any]


class InvalidReceiversFile(Exception):
    """Raised for a file that cannot be used; the text says why."""


@functools.cache
def built_in_receivers() -> ReceiverTable:
    """Return the table without the changes of a file."""
    return _table(_read(TABLE))


def read_receivers(path: Path) -> ReceiverTable:
    """Return the table with the changes of a file. Raises InvalidReceiversFile."""
    changes, built_in = _read(path), _read(TABLE)
    for key, fields in changes.items():
        _check(key, fields, is_new=key not in built_in)
    merged = {key: _merged(built_in.get(key, {}), changes.get(key, {})) for key in (built_in | changes)}
    _refuse_second_owners(merged)
    return _table(merged)


def _read(path: Path) -> dict[str, Fields]:
    """Return the fields of each entry of a file."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise InvalidReceiversFile(f"{path} cannot be read: {error.strerror}.") from error
    if len(data) > MAX_FILE_BYTES:
        raise InvalidReceiversFile(f"{path} has more than {MAX_FILE_BYTES:,} bytes.")
    try:
        entries = yaml.load(data, Loader)  # noqa: S506 - both are safe loaders
    except (yaml.YAMLError, ValueError) as error:
        raise InvalidReceiversFile(f"{path} is neither YAML nor JSON: {' '.join(str(error).split())}.") from error
    if not isinstance(entries, dict) or not 1 <= len(entries) <= MAX_RECEIVERS:
        raise InvalidReceiversFile(f"{path} must have 1 to {MAX_RECEIVERS:,} receivers, each with its limits.")
    return {_key(key): _with_own_hosts(key, _fields(key, entry)) for key, entry in entries.items()}


def _key(key: Any) -> str:
    if isinstance(key, str) and (KEY.fullmatch(key) or HOST_NAME.fullmatch(key)):
        return key
    form = "1 to 30 characters of a-z, 0-9 and hyphens, or the registrable domain of its mail hosts"
    raise InvalidReceiversFile(f"{str(key)[:80]!r} is not the key of a receiver: {form}.")


def _with_own_hosts(key: str, fields: Fields) -> Fields:
    """Return the fields; a key with a dot is one of the names of its mail hosts."""
    return fields if "." not in key else {**fields, "mx": tuple(dict.fromkeys((key, *fields.get("mx", ()))))}


def _fields(key: str, entry: Any) -> Fields:
    if not isinstance(entry, dict):
        raise InvalidReceiversFile(f"{key} must have values, such as connections: 5.")
    if unknown := sorted(str(name)[:80] for name in entry if name not in MEMBERS):
        raise InvalidReceiversFile(f"{key}: {unknown[0]!r} is unknown. Use {', '.join(MEMBERS)}.")
    fields: Fields = {field: _number(key, entry, name) for name, (field, _) in NUMBERS.items() if name in entry}
    fields |= {name: _list(key, entry, name) for name in LISTS if name in entry}
    fields |= {name: _text(key, entry, name) for name in TEXTS if name in entry}
    if WARM_UP in entry:
        fields["warm_up"] = _days(key, entry[WARM_UP])
    if "tls" in entry:
        if entry["tls"] not in TLS:
            raise InvalidReceiversFile(f"{key}: tls must be one of {', '.join(TLS)}.")
        fields["tls"] = entry["tls"]
    return fields


def _number(key: str, entry: Mapping[str, Any], name: str) -> int | None:
    value, (_, largest) = entry[name], NUMBERS[name]
    if (value is None and name == "perMinute") or (type(value) is int and 0 < value <= largest):
        return value
    raise InvalidReceiversFile(f"{key}: {name} must be a whole number from 1 to {largest:,}.")


def _days(key: str, values: Any) -> tuple[int, ...]:
    is_list = isinstance(values, list) and len(values) <= MAX_DAYS
    if is_list and all(type(value) is int and 0 < value <= MAX_PER_DAY for value in values):
        return tuple(values)
    form = f"a list of up to {MAX_DAYS} whole numbers, the messages of each day, such as [50, 100, 250]"
    raise InvalidReceiversFile(f"{key}: {WARM_UP} must be {form}.")


def _list(key: str, entry: Mapping[str, Any], name: str) -> tuple[str, ...]:
    values, (form, description) = entry[name], LISTS[name]
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise InvalidReceiversFile(f"{key}: {name} must be a list of texts, such as [mx.example.com].")
    if name != "replies":
        values = [value.strip(".").lower() for value in values]
    if wrong := next((value for value in values if not form.fullmatch(value)), None):
        raise InvalidReceiversFile(f"{key}: {name}: {wrong[:80]!r} {description}.")
    return tuple(dict.fromkeys(values))


def _text(key: str, entry: Mapping[str, Any], name: str) -> str:
    value, longest = entry[name], TEXTS[name]
    if isinstance(value, str) and value.isprintable() and 0 < len(value) <= longest:
        return value
    raise InvalidReceiversFile(f"{key}: {name} must be a text of 1 to {longest} characters.")


def _check(key: str, fields: Fields, *, is_new: bool) -> None:
    """Refuse what only the operator's file may get wrong."""
    if key == DEFAULT and LISTS.keys() & fields.keys():
        raise InvalidReceiversFile(f"{DEFAULT} has the limits of all other receivers, and no names.")
    if is_new and not (fields.get("mx") or fields.get("domains")):
        raise InvalidReceiversFile(f"{key} is not in the table, and has neither mx nor domains by which to find it.")
    names = (*fields.get("mx", ()), *fields.get("domains", ()))
    if public := next((name for name in names if "." in name and public_suffixes().is_public(name)), None):
        raise InvalidReceiversFile(f"{key}: {public} is a public suffix, below which others have their names.")


def _merged(known: Fields, changes: Fields) -> Fields:
    """Return the fields with changes; elements of lists are added to those that are known."""
    lists = {name: tuple(dict.fromkeys((*known.get(name, ()), *changes.get(name, ())))) for name in LISTS}
    return {**known, **changes, **lists}


def _refuse_second_owners(entries: Mapping[str, Fields]) -> None:
    for name in LISTS:
        owners: dict[str, str] = {}
        for key, fields in entries.items():
            for value in fields[name]:
                if (owner := owners.setdefault(value, key)) != key:
                    raise InvalidReceiversFile(f"{key}: {name}: {value} belongs to {owner}.")


def _table(entries: Mapping[str, Fields]) -> ReceiverTable:
    limits = {name: value for name, value in entries[DEFAULT].items() if name not in (*LISTS, *TEXTS)}
    reason = entries[DEFAULT].get("reason", "")
    default = Receiver(key=DEFAULT, name=DEFAULT, reason=reason, **limits)
    receivers = [
        Receiver(**{"key": key, "name": key, **limits, **fields}) for key, fields in entries.items() if key != DEFAULT
    ]
    return ReceiverTable(receivers, default=default)
