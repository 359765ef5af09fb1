"""Diagnosis: the result of one check of `manage.py doctor`, with the remedy of a fault."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path


class Verdict(StrEnum):
    """The result of a check.

    failed: email or sign-in does not work, or email can be lost.
    warning: works, but not as well as it could.
    """

    OK = "ok"
    WARNING = "warning"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True)
class Diagnosis:
    """remedy: the actions that correct the fault; empty without a fault."""

    verdict: Verdict
    message: str
    remedy: str = ""


@dataclass(frozen=True, kw_only=True)
class DoctorOptions:
    """Options of the command.

    backups: a file, or a directory whose newest file is the last backup; None skips the check.
    probe_domains: domains to whose mail hosts connections on port 25 are tried.
    """

    backups: Path | None = None
    backup_max_hours: float = 26.0
    min_free_gib: float = 2.0
    probe_domains: tuple[str, ...] = ("gmail.com", "outlook.com")


def ok(message: str) -> Diagnosis:
    return Diagnosis(Verdict.OK, message)


def skip(message: str) -> Diagnosis:
    return Diagnosis(Verdict.SKIPPED, message)


def warning(message: str, *, remedy: str) -> Diagnosis:
    return Diagnosis(Verdict.WARNING, message, remedy)


def failed(message: str, *, remedy: str) -> Diagnosis:
    return Diagnosis(Verdict.FAILED, message, remedy)
