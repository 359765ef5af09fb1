"""Verification results: the outcome of each record check, and their form in the domain's row."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from core.lib.coded_texts import CodedText, escape_controls, restore_text

FOUND_LIMIT = 2000


class RecordStatus(StrEnum):
    """MISSING and INVALID come from an authoritative answer; UNKNOWN means that the lookup failed."""

    VALID = "right"
    MISSING = "absent"
    INVALID = "wrong"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class RecordCheck:
    """The check of one record. found: the DNS answer. error: the problem and its fix. note: additional information.

    value replaces the generated record value: the value to publish, given the existing record. passing: of an SPF
    record, the mechanisms that pass, also of included records; stored in a separate column.
    """

    status: RecordStatus
    found: str | None = None
    error: str | None = None
    note: str | None = None
    value: str | None = None
    passing: str = ""


@dataclass(frozen=True)
class VerificationResult:
    """The result of checking a domain. keys: DKIM checks by selector; mail: whether the domain accepts email."""

    keys: Mapping[str, RecordCheck]
    spf: RecordCheck
    dmarc: RecordCheck
    return_path: RecordCheck
    mail: RecordCheck

    def messages(self) -> list[CodedText]:
        """Return the errors and notes of all checks."""
        return _messages([*self.keys.values(), self.spf, self.dmarc, self.return_path, self.mail])


@dataclass(frozen=True)
class HostCheck:
    """The check of a tracking host.

    name: whether DNS leads to this service. proof: whether this service answers there. owner: whether the workspace may
    use it, decided when the check is recorded. authority: the CAA records that refuse its certificate, if there are
    any, and authority_name the name that has them.
    """

    host_id: str
    name: RecordCheck
    proof: RecordCheck
    owner: RecordCheck = RecordCheck(RecordStatus.VALID)
    authority: RecordCheck | None = None
    authority_name: str = ""

    @property
    def decisive(self) -> RecordCheck:
        """The first check that is not valid, or a valid one."""
        checks = (self.name, self.proof, self.owner)
        return next((check for check in checks if check.status is not RecordStatus.VALID), self.owner)

    def messages(self) -> list[CodedText]:
        """Return the errors and notes of all checks."""
        return _messages(check for check in (self.name, self.proof, self.owner, self.authority) if check)


@dataclass(frozen=True)
class ReceivingCheck:
    """The check of a receiving domain.

    mx: whether email for the name comes to this service. owner: whether the workspace may receive it.
    advice: a warning about the name.
    """

    receiving_id: str
    mx: RecordCheck
    owner: RecordCheck = RecordCheck(RecordStatus.VALID)
    advice: RecordCheck = RecordCheck(RecordStatus.VALID)

    @property
    def decisive(self) -> RecordCheck:
        """The first check that is not valid, or a valid one."""
        return self.mx if self.mx.status is not RecordStatus.VALID else self.owner

    def messages(self) -> list[CodedText]:
        """Return the errors and notes of all checks."""
        return _messages([self.mx, self.owner, self.advice])


def _messages(checks: Iterable[RecordCheck]) -> list[CodedText]:
    return [text for check in checks for text in (check.error, check.note) if isinstance(text, CodedText)]


def to_json(result: VerificationResult) -> dict[str, Any]:
    """Return the stored form of a result in English, with the status of each check under "verdict"."""
    checks = {name: _check_to_json(check) for name, check in vars(result).items() if name != "keys"}
    return {"keys": {selector: _check_to_json(check) for selector, check in result.keys.items()}, **checks}


def from_json(
    stored: Mapping[str, Any], messages: Iterable[Mapping[str, Any]] | None = None
) -> VerificationResult | None:
    """Return the result that `to_json` stored; None before the first check.

    messages: the errors and notes with their codes. A text without one was written by an earlier version.
    """
    if not stored:
        return None
    by_text = {message: message for message in map(restore_text, messages or ())}
    checks = {name: _check_from_json(check, by_text) for name, check in stored.items() if name != "keys"}
    keys = {selector: _check_from_json(check, by_text) for selector, check in stored["keys"].items()}
    return VerificationResult(keys=keys, **checks)


def host_to_json(check: HostCheck | ReceivingCheck) -> dict[str, Any]:
    """Return the stored form of the check of a tracking host or a receiving domain."""
    return {
        name: _check_to_json(value) if isinstance(value, RecordCheck) else value for name, value in vars(check).items()
    }


def host_from_json(stored: Mapping[str, Any], messages: Iterable[Mapping[str, Any]] | None = None) -> HostCheck | None:
    """Return the check that `host_to_json` stored; None before the first check."""
    if not stored:
        return None
    by_text = {message: message for message in map(restore_text, messages or ())}
    values: dict[str, Any] = {
        name: _check_from_json(value, by_text) if isinstance(value, dict) else value for name, value in stored.items()
    }
    return HostCheck(**values)


def receiving_from_json(
    stored: Mapping[str, Any], messages: Iterable[Mapping[str, Any]] | None = None
) -> ReceivingCheck | None:
    """Return the check that `host_to_json` stored; None before the first check."""
    if not stored:
        return None
    by_text = {message: message for message in map(restore_text, messages or ())}
    values: dict[str, Any] = {
        name: _check_from_json(value, by_text) if isinstance(value, dict) else value for name, value in stored.items()
    }
    return ReceivingCheck(**values)


def _check_to_json(check: RecordCheck) -> dict[str, Any]:
    """Escape control characters in all texts: messages and values quote DNS answers."""
    texts = {name: value and escape_controls(value) for name, value in vars(check).items() if name != "passing"}
    return {"verdict": texts.pop("status"), **texts}


def _check_from_json(stored: Mapping[str, Any], by_text: Mapping[str, str]) -> RecordCheck:
    texts = {name: by_text.get(text, text) for name, text in stored.items()}
    return RecordCheck(RecordStatus(texts.pop("verdict")), **texts)


def join_texts(texts: Iterable[str]) -> str | None:
    """Return DNS texts one per line, cut to FOUND_LIMIT characters; None for no texts."""
    joined = "\n".join(text.replace("\n", "\\x0a") for text in texts)
    return (joined if len(joined) <= FOUND_LIMIT else f"{joined[:FOUND_LIMIT]}…") or None
