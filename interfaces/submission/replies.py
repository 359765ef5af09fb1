"""SMTP replies: codes and enhanced status codes (RFC 3463) of successes, refusals and the errors of the API."""

import logging
from collections.abc import Mapping

from django.db import InterfaceError, OperationalError

from core.api.errors import Problem, RateLimitExceeded
from core.api.exception_handler import to_problem
from core.lib.worker.database_outage import database_outage
from core.workspaces.errors import (
    DomainNotAllowed,
    InsufficientScope,
    NetworkNotAllowed,
    QuotaExceeded,
    TemplateNotAllowed,
    Unauthenticated,
    WorkspaceDeleted,
    WorkspaceSuspended,
)
from domains.errors import DomainNotRegistered, DomainNotVerified
from emails.errors import (
    AttachmentsTooLarge,
    IdempotencyInProgress,
    IdempotencyKeyReuse,
    InvalidIdempotencyKey,
    RecipientCapped,
    RecipientNotAllowed,
    TooManyAttachments,
)
from interfaces.submission.errors import Refused
from interfaces.submission.options import IDEMPOTENCY_KEY
from suppressions.errors import RecipientSuppressed
from templates_app.errors import MissingTemplateVariables, TemplateNotFound, TemplateOutputTooLarge

log = logging.getLogger("postrider.submission")

SENDER_OK = "250 2.1.0 OK"
RECIPIENT_OK = "250 2.1.5 OK"
ACCEPTED = "250 2.0.0 Accepted as {}"
REPEATED = "250 2.0.0 Accepted as {} (already accepted)"
SIGNED_IN = "235 2.7.0 Authentication successful"
NEEDS_SIGN_IN = "530 5.7.0 Sign in first: AUTH with an API key as the password"
NEEDS_RECIPIENT = "503 5.5.1 Send RCPT first"
TOO_MANY_RECIPIENTS = "452 4.5.3 Too many recipients; send the others in another message"
TOO_MANY_FAILURES = "454 4.7.0 {}"
TOO_MANY_SESSIONS = "421 4.7.0 Too many sessions of this workspace; close some of them"
BUSY = "421 4.3.2 Too many large messages at once; try again"
DATABASE_UNAVAILABLE = "451 4.3.0 The database is unavailable; try again"
INTERNAL_ERROR = "451 4.3.0 Internal error; nothing was accepted"
# The first that matches. A refusal of the content is 5.6.0, of the permission 5.7.1; 4yz makes a program repeat later.
CODES: tuple[tuple[type[Problem], str], ...] = (
    (Unauthenticated, "535 5.7.8"),
    (InsufficientScope, "535 5.7.8"),
    (NetworkNotAllowed, "535 5.7.8"),
    (DomainNotAllowed, "550 5.7.1"),
    (TemplateNotAllowed, "550 5.7.1"),
    (RateLimitExceeded, "451 4.7.1"),
    (RecipientCapped, "451 4.7.1"),
    (IdempotencyInProgress, "451 4.3.0"),
    (DomainNotRegistered, "550 5.7.1"),
    (DomainNotVerified, "550 5.7.1"),
    (RecipientNotAllowed, "550 5.7.1"),
    (RecipientSuppressed, "550 5.7.1"),
    (QuotaExceeded, "550 5.7.1"),
    (WorkspaceDeleted, "550 5.7.1"),
    (WorkspaceSuspended, "550 5.7.1"),
    (AttachmentsTooLarge, "552 5.3.4"),
    (TooManyAttachments, "552 5.3.4"),
)
OTHER_CODE = "550 5.6.0"
# The fields of problems that have no member `field`; the first that a header set.
DATA = ("templateData", "templateId")
FIELDS: dict[type[Problem], tuple[str, ...]] = {
    TemplateNotFound: ("templateId",),
    MissingTemplateVariables: DATA,
    TemplateOutputTooLarge: DATA,
    InvalidIdempotencyKey: (IDEMPOTENCY_KEY,),
    IdempotencyKeyReuse: (IDEMPOTENCY_KEY,),
    IdempotencyInProgress: (IDEMPOTENCY_KEY,),
}
MAX_TEXT = 400


def reply_to_error(error: Exception) -> str:
    """Return the reply for an exception: the explanation of a refusal, nothing about the cause of an internal error."""
    if isinstance(error, Refused):
        return one_line(str(error))
    if isinstance(error, OperationalError | InterfaceError):
        database_outage.record_failure(error, has_traceback=True)
        return DATABASE_UNAVAILABLE
    if not isinstance(error, Problem):
        log.error("a message could not be accepted", exc_info=error)
        return INTERNAL_ERROR
    code = next((code for problem, code in CODES if isinstance(error, problem)), OTHER_CODE)
    return one_line(f"{code} {to_problem(error).detail}{_reset_of_quota(error)}")


def add_header_name(problem: Problem, headers: Mapping[str, str]) -> None:
    """Name the header that set the field of a problem. headers: names by field."""
    fields = FIELDS.get(type(problem), (str(problem.members.get("field")),))
    if named := [headers[field] for field in fields if field in headers]:
        problem.detail = f"{named[0]}: {problem.detail}"


def _reset_of_quota(problem: Problem) -> str:
    return f" It resets at {problem.members['resetsAt']}." if isinstance(problem, QuotaExceeded) else ""


def one_line(text: str) -> str:
    """Return a text as one line of ASCII, within the length of a reply (RFC 5321, section 4.5.3.1.5)."""
    return " ".join(text.replace("…", "...").encode("ascii", "replace").decode().split())[:MAX_TEXT]
