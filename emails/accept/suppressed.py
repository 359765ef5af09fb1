"""Suppressed recipients of emails to accept: refused, reported or accepted, as the entrance expects."""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from core.api.errors import Problem
from core.lib.coded_texts import CodedText
from core.lib.email_addresses import normalize_address
from core.workspaces.models import Workspace
from emails.accept.drafts import FieldAddress
from emails.accept.insertion import NewEmail
from suppressions.errors import RecipientSuppressed
from suppressions.services import Sending, SuppressionMatch, find_suppressed, find_suppressed_sendings


class SuppressionPolicy(Enum):
    """The handling of suppressed recipients by accept_emails. No policy sends to them.

    REFUSE: an email with one is a problem. REPORT: only if all recipients are suppressed; else the result lists them
    in `suppressed`. ACCEPT: they fail when a worker claims them, with an event.
    """

    REFUSE = "refuse"
    REPORT = "report"
    ACCEPT = "accept"


def judge_suppressed(
    workspace: Workspace, checked: Sequence[NewEmail | Problem], policy: SuppressionPolicy
) -> tuple[list[NewEmail | Problem], dict[str, list[str]]]:
    """Apply the policy; return the emails, and the suppressed addresses of accepted emails by email id."""
    if policy is SuppressionPolicy.ACCEPT:
        return list(checked), {}
    emails = [email for email in checked if isinstance(email, NewEmail)]
    found = find_suppressed_sendings({sending for email in emails for sending in _sendings(workspace, email)})
    judged: list[NewEmail | Problem] = []
    listed = {}
    for email in checked:
        entries = {} if isinstance(email, Problem) else _suppressed_in(workspace, email, found)
        if isinstance(email, Problem) or not entries:
            judged.append(email)
        elif policy is SuppressionPolicy.REFUSE or len(entries) == len(email.recipients):
            judged.append(suppressed_problem(list(entries.values())))
        else:
            judged.append(email)
            listed[email.id] = [entry["email"] for entry in entries.values()]
    return judged, listed


def _suppressed_in(
    workspace: Workspace, email: NewEmail, found: Mapping[Sending, SuppressionMatch]
) -> dict[int, dict[str, str]]:
    sendings = [sending for sending in _sendings(workspace, email) if sending in found]
    return suppressed_among(
        recipient_addresses(email), {normalize_address(sending[1]): found[sending] for sending in sendings}
    )


def _sendings(workspace: Workspace, email: NewEmail) -> list[Sending]:
    return [(workspace.id, spec, email.shared.stream) for _, spec in recipient_addresses(email)]


def recipient_addresses(email: NewEmail) -> list[FieldAddress]:
    return [(recipient.kind, recipient.address) for recipient in email.recipients]


def find_suppressed_among(
    workspace: Workspace, addressed: Sequence[FieldAddress], *, stream: str
) -> dict[int, dict[str, str]]:
    """Return the result of suppressed_among for an email of a stream, in one query."""
    matches = find_suppressed(workspace.id, [spec for _, spec in addressed], stream=stream)
    return suppressed_among(addressed, matches)


def refuse_suppressed(entries: Mapping[int, dict[str, str]]) -> None:
    """Raise RecipientSuppressed unless suppressed_among has found nothing."""
    if entries:
        raise suppressed_problem(list(entries.values()))


def suppressed_among(
    addressed: Sequence[FieldAddress], matches: Mapping[str, SuppressionMatch]
) -> dict[int, dict[str, str]]:
    """Return the error entry of each suppressed address, by its index among the addressed."""
    return {
        index: {
            "email": spec,
            "field": field,
            "reason": match.reason,
            "suppressionId": match.id,
            **({"stream": match.stream} if match.stream else {}),
        }
        for index, (field, spec) in enumerate(addressed)
        if (match := matches.get(normalize_address(spec)))
    }


def suppressed_problem(entries: Sequence[dict[str, str]]) -> RecipientSuppressed:
    first = entries[0]
    values: dict[str, Any] = {"address": first["email"], "reason": [first["reason"]]}
    detail = CodedText("emails.suppressed", **values)
    if len(entries) > 1:
        detail = CodedText("emails.several_suppressed", count=len(entries) - 1, **values)
    return RecipientSuppressed(detail, recipients=entries)
