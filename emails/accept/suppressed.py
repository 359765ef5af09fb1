"""Suppressed recipients, and those that are not allowed: refused, reported or accepted, as the entrance expects."""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, NotRequired, TypedDict

from core.api.errors import Problem
from core.lib.coded_texts import CodedText
from core.lib.email_addresses import normalize_address
from core.workspaces.models import Workspace
from emails.accept.allowed import not_allowed_problem, refused_entries
from emails.accept.insertion import FieldAddress, NewEmail, NewRecipient
from suppressions.errors import RecipientSuppressed
from suppressions.services import SuppressionMatch, find_suppressed, find_suppressed_sendings


class SuppressedEntry(TypedDict):
    """A suppressed recipient in an error; without a stream if the suppression is for the whole workspace."""

    email: str
    field: str
    reason: str
    suppressionId: str
    stream: NotRequired[str]


class SuppressionPolicy(Enum):
    """The handling of recipients that are suppressed or not allowed by accept_emails. No policy sends to them.

    REFUSE: an email with one is a problem.
    REPORT: an email is a problem if all recipients are suppressed; otherwise the result lists them in `suppressed`.
    ACCEPT: they fail when a worker claims them, with an event.
    """

    REFUSE = "refuse"
    REPORT = "report"
    ACCEPT = "accept"


def judge_suppressed(
    workspace: Workspace, checked: Sequence[NewEmail | Problem], policy: SuppressionPolicy
) -> tuple[list[NewEmail | Problem], dict[str, list[str]]]:
    """Apply the policy; return the emails, and the addresses of accepted emails that get nothing by email id."""
    if policy is SuppressionPolicy.ACCEPT:
        return list(checked), {}
    emails = [email for email in checked if isinstance(email, NewEmail)]
    named = {
        (workspace.id, recipient.address, email.shared.stream) for email in emails for recipient in email.recipients
    }
    matches: dict[str, dict[str, SuppressionMatch]] = {stream: {} for _, _, stream in named}
    for (_, address, stream), match in find_suppressed_sendings(named).items():
        matches[stream][normalize_address(address)] = match
    judged: list[NewEmail | Problem] = []
    listed = {}
    for email in checked:
        if isinstance(email, Problem):
            judged.append(email)
            continue
        entries = suppressed_among(recipient_addresses(email.recipients), matches[email.shared.stream])
        refused = refused_entries(email)
        unsent = [
            recipient.address
            for index, recipient in enumerate(email.recipients)
            if recipient.is_refused or index in entries
        ]
        if not unsent:
            judged.append(email)
        elif policy is SuppressionPolicy.REFUSE or len(unsent) == len(email.recipients):
            judged.append(not_allowed_problem(refused) if refused else suppressed_problem(list(entries.values())))
        else:
            judged.append(email)
            listed[email.id] = unsent
    return judged, listed


def recipient_addresses(recipients: Iterable[NewRecipient]) -> list[FieldAddress]:
    return [(recipient.kind, recipient.address) for recipient in recipients]


def find_suppressed_among(
    workspace: Workspace, addressed: Sequence[FieldAddress], *, stream: str
) -> dict[int, SuppressedEntry]:
    """Return the result of suppressed_among for an email of a stream, in one query."""
    matches = find_suppressed(workspace.id, [spec for _, spec in addressed], stream=stream)
    return suppressed_among(addressed, matches)


def refuse_suppressed(entries: Mapping[int, SuppressedEntry]) -> None:
    """Raise RecipientSuppressed unless suppressed_among has found nothing."""
    if entries:
        raise suppressed_problem(list(entries.values()))


def suppressed_among(
    addressed: Sequence[FieldAddress], matches: Mapping[str, SuppressionMatch]
) -> dict[int, SuppressedEntry]:
    """Return the error entry of each suppressed address, by its index among the addressed."""
    return {
        index: _entry(field, spec, match)
        for index, (field, spec) in enumerate(addressed)
        if (match := matches.get(normalize_address(spec)))
    }


def _entry(field: str, spec: str, match: SuppressionMatch) -> SuppressedEntry:
    entry = SuppressedEntry(email=spec, field=field, reason=match.reason, suppressionId=match.id)
    return {**entry, "stream": match.stream} if match.stream else entry


def suppressed_problem(entries: Sequence[SuppressedEntry]) -> RecipientSuppressed:
    first = entries[0]
    values: dict[str, Any] = {"address": first["email"], "reason": [first["reason"]]}
    detail = CodedText("emails.suppressed", **values)
    if len(entries) > 1:
        detail = CodedText("emails.several_suppressed", count=len(entries) - 1, **values)
    return RecipientSuppressed(detail, recipients=entries)
