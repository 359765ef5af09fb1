"""Recipients whom the rules of the workspace or the key do not allow: refused, captured or redirected.

The claim asks again (emails.sending.sending_checks, emails.sending.diversion). See docs/decisions/0388.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TypedDict

from core.api.errors import Problem
from core.lib.coded_texts import CodedText
from core.lib.email_addresses import normalize_address
from core.workspaces.key_limits import KeyLimits
from core.workspaces.models import Workspace
from core.workspaces.recipients.rules import AppliedRules
from emails.accept.insertion import NewEmail, NewRecipient, SharedFields
from emails.errors import RecipientNotAllowed
from emails.recipient_rules import DIVERSIONS, applied_rules, is_refused, treat_address


class RefusedEntry(TypedDict):
    """A recipient that is not allowed, in an error."""

    email: str
    field: str


def apply_rules(
    workspace: Workspace, emails: Iterable[NewEmail | Problem], limits: KeyLimits
) -> list[NewEmail | Problem]:
    """Return the emails with what the rules do with each recipient."""
    rules = applied_rules(workspace=workspace.rules, key=limits.rules)
    if not rules:
        return list(emails)
    diverted: dict[int, SharedFields] = {}
    return [email if isinstance(email, Problem) else _with_rules(email, rules, diverted) for email in emails]


def apply_to_all(workspace: Workspace, emails: Sequence[NewEmail], limits: KeyLimits) -> list[NewEmail]:
    """Return the result of apply_rules for emails without problems."""
    return [email for email in apply_rules(workspace, emails, limits) if isinstance(email, NewEmail)]


def refused_entries(email: NewEmail) -> list[RefusedEntry]:
    """Return the error entries of the recipients that are not allowed, also of repeated ones."""
    refused = {normalize_address(recipient.address) for recipient in email.recipients if recipient.is_refused}
    if not refused:
        return []
    return [
        RefusedEntry(email=spec, field=field) for field, spec in email.addressed if normalize_address(spec) in refused
    ]


def refuse_recipients(email: NewEmail) -> None:
    """Raise RecipientNotAllowed if a recipient is not allowed."""
    if entries := refused_entries(email):
        raise not_allowed_problem(entries)


def not_allowed_problem(entries: Sequence[RefusedEntry]) -> RecipientNotAllowed:
    address = entries[0]["email"]
    detail = CodedText("emails.not_allowed", address=address)
    if len(entries) > 1:
        detail = CodedText("emails.several_not_allowed", address=address, count=len(entries) - 1)
    return RecipientNotAllowed(detail, recipients=list(entries))


def _with_rules(email: NewEmail, rules: AppliedRules, diverted: dict[int, SharedFields]) -> NewEmail:
    """Return an email with its rules. diverted: the fields of emails of which nothing leaves, by those they replace."""
    recipients = [_treated(recipient, email.shared, rules) for recipient in email.recipients]
    if not all(recipient.diversion for recipient in recipients):
        return replace(email, recipients=recipients)
    shared = email.shared
    kept = diverted.get(id(shared)) or diverted.setdefault(id(shared), replace(shared, is_diverted=True))
    return replace(email, recipients=recipients, shared=kept)


def _treated(recipient: NewRecipient, shared: SharedFields, rules: AppliedRules) -> NewRecipient:
    treatment = treat_address(rules, recipient.address, is_test=shared.is_test)
    if treatment is None:
        return recipient
    if is_refused(treatment):
        return replace(recipient, is_refused=True)
    # If RECIPIENTS diverts the email, the claim decides; the recipient must not be redirected later.
    return recipient if shared.is_diverted else replace(recipient, diversion=DIVERSIONS[treatment.otherwise])
