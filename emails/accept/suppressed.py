"""Suppressed recipients of emails to accept: refused, reported or accepted, as the entrance expects."""

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from api.errors import Problem
from emails.accept.drafts import FieldAddress
from emails.accept.insertion import NewEmail
from lib.coded_texts import CodedText
from lib.email_addresses import normalize_address
from suppressions.errors import RecipientSuppressed
from suppressions.services import SuppressionMatch, find_suppressed_sendings
from workspaces.models import Workspace


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
    sendings = {
        (workspace.id, spec, email.shared.stream)
        for email in checked
        if isinstance(email, NewEmail)
        for _, spec in recipient_addresses(email)
    }
    found = find_suppressed_sendings(sendings)
    matches = {(normalize_address(address), stream): match for (_, address, stream), match in found.items()}
    judged: list[NewEmail | Problem] = []
    listed = {}
    for email in checked:
        entries = {} if isinstance(email, Problem) else _suppressed_in(email, matches)
        if isinstance(email, Problem) or not entries:
            judged.append(email)
        elif policy is SuppressionPolicy.REFUSE or len(entries) == len(email.recipients):
            judged.append(suppressed_problem(list(entries.values())))
        else:
            judged.append(email)
            listed[email.id] = [entry["email"] for entry in entries.values()]
    return judged, listed


def _suppressed_in(email: NewEmail, matches: Mapping[tuple[str, str], SuppressionMatch]) -> dict[int, dict[str, str]]:
    addressed = recipient_addresses(email)
    keys = {normalize_address(spec) for _, spec in addressed}
    stream = email.shared.stream
    return suppressed_among(addressed, {key: matches[key, stream] for key in keys if (key, stream) in matches})


def recipient_addresses(email: NewEmail) -> list[FieldAddress]:
    return [(recipient.kind, recipient.address) for recipient in email.recipients]


def refuse_suppressed(addressed: Sequence[FieldAddress], matches: Mapping[str, SuppressionMatch]) -> None:
    suppressed = suppressed_among(addressed, matches)
    if suppressed:
        raise suppressed_problem(list(suppressed.values()))


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
