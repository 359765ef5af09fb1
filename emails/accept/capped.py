"""Caps at acceptance: recipients that have got too many emails are refused, or dropped (docs/decisions/0389)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypedDict

from core.api.errors import Problem
from core.lib.coded_texts import CodedText
from core.lib.datetimes import format_datetime
from core.lib.email_addresses import normalize_address
from core.workspaces.key_limits import KeyLimits
from core.workspaces.models import Workspace
from core.workspaces.recipients.caps import Exceeding
from emails.accept.insertion import NewEmail
from emails.errors import RecipientCapped
from emails.recipient_caps import CountedRecipient, Exceeded, OwnedCap, count_recipients
from emails.recipient_rules import applied_rules, leaves_to


class CappedEntry(TypedDict):
    """A recipient that has got too many emails, in an error."""

    email: str
    field: str
    retryAt: str


@dataclass(frozen=True)
class AppliedCaps:
    """The caps of a workspace, of the key that accepts emails, and of the installation."""

    caps: tuple[OwnedCap, ...]

    @classmethod
    def of(cls, workspace: Workspace, limits: KeyLimits) -> "AppliedCaps":
        rules = applied_rules(workspace=workspace.rules, key=limits.rules)
        return cls(rules.owned_caps(workspace_id=workspace.id, key_id=limits.key_id))

    def __bool__(self) -> bool:
        return bool(self.caps)

    def count(self, emails: Sequence[NewEmail | Problem]) -> list[NewEmail | Problem]:
        """Count the recipients; return the emails, with a problem in place of one that a cap refuses.

        Must run in the transaction that accepts the emails: without a commit, nothing was counted.
        """
        if not self.caps:
            return list(emails)
        new = [email for email in emails if isinstance(email, NewEmail)]
        groups = [self._counted(email) for email in new]
        results = count_recipients(groups)
        judged = {
            email.id: _judged(email, dict(zip((one.id for one in group), exceeded, strict=True)))
            for email, group, exceeded in zip(new, groups, results, strict=True)
        }
        return [judged[email.id] if isinstance(email, NewEmail) else email for email in emails]

    def count_one(self, email: NewEmail) -> NewEmail:
        """Return the result of count for one email. Raises RecipientCapped."""
        (counted,) = self.count([email])
        if isinstance(counted, Problem):
            raise counted
        return counted

    def _counted(self, email: NewEmail) -> list[CountedRecipient]:
        """Return the recipients that get the message themselves."""
        if email.shared.is_diverted:
            return []
        return [
            CountedRecipient(one.id, one.address, email.shared.template_id, self.caps)
            for one in email.recipients
            if not (one.diversion or one.is_refused) and leaves_to(one.address, is_test=email.shared.is_test)
        ]


def _judged(email: NewEmail, exceeded: Mapping[object, Exceeded | None]) -> NewEmail | Problem:
    found = {id_: one for id_, one in exceeded.items() if one}
    if not found:
        return email
    if any(one.exceeding is Exceeding.REFUSE for one in found.values()):
        refused = {
            normalize_address(recipient.address): one
            for recipient in email.recipients
            if (one := found.get(recipient.id)) and one.exceeding is Exceeding.REFUSE
        }
        return _problem(email, refused)
    recipients = [
        replace(recipient, reason=RecipientCapped.code) if recipient.id in found else recipient
        for recipient in email.recipients
    ]
    return replace(email, recipients=recipients)


def _problem(email: NewEmail, refused: Mapping[str, Exceeded]) -> RecipientCapped:
    entries = [
        CappedEntry(email=spec, field=field, retryAt=format_datetime(one.retry_at))
        for field, spec in email.addressed
        if (one := refused.get(normalize_address(spec)))
    ]
    return capped_problem(entries, list(refused.values()))


def capped_problem(entries: Sequence[CappedEntry], exceeded: Sequence[Exceeded]) -> RecipientCapped:
    """Return the problem of recipients; `exceeded` are their caps."""
    retry_at: datetime = max(one.retry_at for one in exceeded)
    seconds = max(1, math.ceil(max(one.retry_after_seconds for one in exceeded)))
    until = format_datetime(retry_at)
    detail = CodedText("emails.capped", address=entries[0]["email"], until=until)
    return RecipientCapped(detail, recipients=list(entries), retryAt=until, headers={"Retry-After": str(seconds)})
