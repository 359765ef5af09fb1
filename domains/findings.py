"""What a check saw of a record, and how it is kept in the domain's row."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

FOUND_LIMIT = 2000
# Answers are strangers' bytes: PostgreSQL's JSON takes no NUL, and terminals obey the others.
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


class Verdict(StrEnum):
    """absent and wrong are facts that the DNS told; unknown means that it gave no answer."""

    RIGHT = "right"
    ABSENT = "absent"
    WRONG = "wrong"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Finding:
    """found is what the DNS answered; error says what to change; note what is worth knowing.

    value takes the place of the record that is generated: what to publish, given what is there.
    """

    verdict: Verdict
    found: str | None = None
    error: str | None = None
    note: str | None = None
    value: str | None = None


@dataclass(frozen=True)
class Sight:
    """What one check saw. keys: findings by selector; mail: whether the domain takes mail at all."""

    keys: Mapping[str, Finding]
    spf: Finding
    dmarc: Finding
    return_path: Finding
    mail: Finding


def to_json(sight: Sight) -> dict[str, Any]:
    return asdict(sight)


def from_json(kept: Mapping[str, Any]) -> Sight | None:
    """Return what `to_json` wrote; None before the first check."""
    if not kept:
        return None
    rest = {name: _finding(value) for name, value in kept.items() if name != "keys"}
    return Sight(keys={selector: _finding(value) for selector, value in kept["keys"].items()}, **rest)


def _finding(kept: Mapping[str, Any]) -> Finding:
    return Finding(**{**kept, "verdict": Verdict(kept["verdict"])})


def shown(texts: Iterable[str]) -> str | None:
    """Return what was found in a form that is safe to keep and to show; None for nothing."""
    whole = "\n".join(CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text) for text in texts)
    return (whole if len(whole) <= FOUND_LIMIT else f"{whole[:FOUND_LIMIT]}…") or None
