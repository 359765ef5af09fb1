"""Error messages with hints, and the exit codes of the program (docs/guides/command-line.md)."""

import csv
from typing import Optional

import click

from postrider_client import errors
from postrider_client.errors import ApiError, ConnectionFailed, PostriderError, ValidationError

FAILED, USAGE, KEY, NOT_FOUND, REJECTED, LIMITED, UNREACHABLE, CHANGES = range(1, 9)
OUTPUT_CLOSED = 1
INTERRUPTED = 130


class UnknownName(click.ClickException):
    """Raised for a name that nothing in the workspace has."""


# The first row that the error is an instance of decides the exit code and the hint.
RULES: tuple[tuple[type[Exception], int, str], ...] = (
    (errors.AuthenticationError, KEY, "Run `postrider login`, or check POSTRIDER_API_KEY."),
    (errors.InsufficientScope, KEY, "Use a key with the scope {error.required_scope}."),
    (errors.PlanLimitReached, LIMITED, ""),
    (errors.Forbidden, KEY, ""),
    (UnknownName, NOT_FOUND, "Check the name, and that the key is for the right workspace."),
    (errors.NotFound, NOT_FOUND, "Check the id, and that the key is for the right workspace."),
    (errors.QuotaExceeded, LIMITED, ""),
    (errors.RateLimitExceeded, LIMITED, "Try again later."),
    (errors.ServerError, UNREACHABLE, "Try again later."),
    (ConnectionFailed, UNREACHABLE, "Check the URL, and that the service is running."),
    (errors.RecipientSuppressed, REJECTED, "See `postrider suppressions export`."),
    (errors.DomainNotVerified, REJECTED, "See `postrider domains records {error.domain}`."),
    (errors.TemplateNotFound, REJECTED, ""),
    (ApiError, REJECTED, ""),
    (PostriderError, FAILED, ""),
    (click.UsageError, USAGE, "See `{error.ctx.command_path} --help`."),
    (click.ClickException, FAILED, ""),
    (OSError, FAILED, ""),
    (UnicodeError, FAILED, "Files and other input must be UTF-8."),
    (csv.Error, FAILED, "The file must be CSV."),
)


def exit_code(error: Exception) -> int:
    return _rule_of(error)[0]


def error_message(error: Exception) -> Optional[str]:
    """Return one line with the problem and how to fix it, or None for an error that is a defect of the program."""
    if not isinstance(error, tuple(kind for kind, _, _ in RULES)):
        return None
    hint = _rule_of(error)[1]
    if isinstance(error, click.UsageError) and error.ctx is None:
        hint = ""
    text = " ".join(_text_of(error).split())
    separator = "" if text.endswith((".", "!", "?")) else "."
    return f"{text}{separator} {hint.format(error=error)}".rstrip()


def _rule_of(error: Exception) -> tuple[int, str]:
    return next((code, hint) for kind, code, hint in RULES if isinstance(error, kind))


def _text_of(error: Exception) -> str:
    if isinstance(error, ValidationError):
        return "; ".join(f"{one.field}: {one.detail}" for one in error.errors)
    return error.format_message() if isinstance(error, click.ClickException) else str(error)
