"""What a check saw of a record, and how it is kept in the domain's row."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

FOUND_LIMIT = 2000
# Answers are strangers' bytes: PostgreSQL's JSON takes no NUL, and terminals obey the others.
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")


class RecordStatus(StrEnum):
    """absent and wrong are facts that the DNS told; unknown means that it gave no answer."""

    RIGHT = "right"
    ABSENT = "absent"
    WRONG = "wrong"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class RecordCheck:
    """found is what the DNS answered; error says what to change; note what is worth knowing.

    value takes the place of the record that is generated: what to publish, given what is there.
    """

    verdict: RecordStatus
    found: str | None = None
    error: str | None = None
    note: str | None = None
    value: str | None = None


@dataclass(frozen=True)
class VerificationResult:
    """What one check saw. keys: findings by selector; mail: whether the domain takes mail at all."""

    keys: Mapping[str, RecordCheck]
    spf: RecordCheck
    dmarc: RecordCheck
    return_path: RecordCheck
    mail: RecordCheck


def to_json(sight: VerificationResult) -> dict[str, Any]:
    whole: dict[str, Any] = _plain(asdict(sight))
    return whole


def from_json(kept: Mapping[str, Any]) -> VerificationResult | None:
    """Return what `to_json` wrote; None before the first check."""
    if not kept:
        return None
    rest = {name: _finding(value) for name, value in kept.items() if name != "keys"}
    return VerificationResult(keys={selector: _finding(value) for selector, value in kept["keys"].items()}, **rest)


def _finding(kept: Mapping[str, Any]) -> RecordCheck:
    return RecordCheck(**{**kept, "verdict": RecordStatus(kept["verdict"])})


def _plain(value: Any) -> Any:
    """Take control characters out of all texts: sentences and values quote what was found."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return CONTROL.sub(_escaped, value) if isinstance(value, str) else value


def _escaped(found: re.Match[str]) -> str:
    return f"\\x{ord(found[0]):02x}"


def shown(texts: Iterable[str]) -> str | None:
    """Return what was found, one text a line, cut where it is long; None for nothing."""
    whole = "\n".join(text.replace("\n", "\\x0a") for text in texts)
    return (whole if len(whole) <= FOUND_LIMIT else f"{whole[:FOUND_LIMIT]}…") or None
