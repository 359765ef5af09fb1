"""Verification results: the outcome of each record check, and their form in the domain's row."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

from core.lib.coded_texts import CodedText, escape_controls, restore_text

FOUND_LIMIT = 2000
# Fields of a result that have a column: the version before knows none of them.
COLUMNS = frozenset({"tls_reporting"})


class RecordStatus(StrEnum):
    """MISSING and INVALID come from an authoritative answer; UNKNOWN means that the lookup failed."""

    VALID = "right"
    MISSING = "absent"
    INVALID = "wrong"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class RecordCheck:
    """The check of one record.

    found: the DNS answer.
    error: the problem and its fix.
    note: additional information.
    value: replaces the generated record value with the value to publish, given the existing record.
    passing: the mechanisms of an SPF record that pass, also of included records; stored in a separate column.
    """

    status: RecordStatus
    found: str | None = None
    error: str | None = None
    note: str | None = None
    value: str | None = None
    passing: str = ""


@dataclass(frozen=True)
class VerificationResult:
    """The result of checking a domain.

    keys: DKIM checks by selector.
    mail: whether the domain accepts email.
    """

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

    name: whether DNS leads to this service.
    proof: whether this service answers there.
    owner: whether the workspace may use it, decided when the check is recorded.
    authority: the CAA records that refuse its certificate, if there are any, and authority_name the name that has them.
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

    mx: whether email for the name comes to this service.
    owner: whether the workspace may receive it.
    advice: a warning about the name.
    tls_reporting: the texts that ask for TLS reports, stored in a separate column; None without an answer.
    """

    receiving_id: str
    mx: RecordCheck
    owner: RecordCheck = RecordCheck(RecordStatus.VALID)
    advice: RecordCheck = RecordCheck(RecordStatus.VALID)
    tls_reporting: str | None = None

    @property
    def decisive(self) -> RecordCheck:
        """The first check that is not valid, or a valid one."""
        return self.mx if self.mx.status is not RecordStatus.VALID else self.owner

    def messages(self) -> list[CodedText]:
        """Return the errors and notes of all checks."""
        return _messages([self.mx, self.owner, self.advice])


SubjectCheck = VerificationResult | HostCheck | ReceivingCheck
CheckT = TypeVar("CheckT", VerificationResult, HostCheck, ReceivingCheck)


def _messages(checks: Iterable[RecordCheck]) -> list[CodedText]:
    return [text for check in checks for text in (check.error, check.note) if isinstance(text, CodedText)]


def findings_of(check: SubjectCheck) -> dict[str, Any]:
    """Return the columns of a row with the result of its check, in English, and the codes of its messages."""
    return {
        "findings": to_json(check),
        "finding_codes": [message.to_json() for message in check.messages()],
    }


def to_json(check: SubjectCheck) -> dict[str, Any]:
    """Return the stored form of a result in English, with the status of each check under "verdict"."""
    return {name: _to_json(value) for name, value in vars(check).items() if name not in COLUMNS}


def from_json(
    kind: type[CheckT], stored: Mapping[str, Any], messages: Iterable[Mapping[str, Any]] | None = None
) -> CheckT | None:
    """Return the result of a kind that `to_json` stored; None before the first check.

    messages: the errors and notes with their codes. A text without one was written by an earlier version.
    """
    if not stored:
        return None
    by_text = {message: message for message in map(restore_text, messages or ())}
    return kind(**{name: _from_json(value, by_text) for name, value in stored.items()})


def _to_json(value: Any) -> Any:
    if isinstance(value, RecordCheck):
        return _check_to_json(value)
    return {name: _check_to_json(check) for name, check in value.items()} if isinstance(value, Mapping) else value


def _from_json(value: Any, by_text: Mapping[str, str]) -> Any:
    if not isinstance(value, dict):
        return value
    if isinstance(value.get("verdict"), str):
        return _check_from_json(value, by_text)
    return {selector: _check_from_json(check, by_text) for selector, check in value.items()}


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
