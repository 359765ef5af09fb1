"""Acceptance of emails. A call that returns has committed everything; a call that raises has written nothing."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import nullcontext
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction

from core.api.errors import Problem, problem_members
from core.lib.datetimes import format_datetime
from core.lib.worker import wakeup
from core.lib.worker.failpoints import failpoint
from core.workspaces.key_limits import KeyLimits
from core.workspaces.models import Workspace
from core.workspaces.quota import raise_quota_exceeded, take_quota
from emails.accept.batches import join_batches
from emails.accept.checks import check_bulk, check_copy, check_draft, check_drafts
from emails.accept.content_warnings import Warnings
from emails.accept.drafts import BulkDraft, Draft, diverts
from emails.accept.idempotency import IdempotencyKey, StoredResponse, claim_key, store_response
from emails.accept.insertion import (
    SHARED_COLUMNS,
    FieldAddress,
    NewEmail,
    NewRecipient,
    SharedFields,
    insert_attachments,
    insert_emails,
)
from emails.accept.suppressed import (
    SuppressionPolicy,
    find_suppressed_among,
    judge_suppressed,
    recipient_addresses,
    refuse_suppressed,
    suppressed_among,
    suppressed_problem,
)
from emails.models import Email, Entrance
from emails.states import EmailStatus
from suppressions.errors import RecipientSuppressed


def send_email(
    workspace: Workspace,
    *,
    draft: Draft,
    key: IdempotencyKey | None,
    limits: KeyLimits,
    suppressed: SuppressionPolicy = SuppressionPolicy.REFUSE,
) -> StoredResponse:
    """Accept one email and notify the workers.

    limits: those of the API key; NO_LIMITS for the dashboard.
    Raises the errors of check_draft, and RecipientSuppressed, QuotaExceeded, IdempotencyInProgress,
    IdempotencyKeyReuse.
    """
    email = check_draft(workspace, draft, limits)
    addressed = [] if suppressed is SuppressionPolicy.ACCEPT else email.addressed
    if key is None and not draft.files:
        # The only statement that writes is atomic by itself.
        return StoredResponse(_accept(workspace, email, addressed))
    with transaction.atomic():
        response = claim_key(workspace, key)
        if response:
            return response
        body = _accept(workspace, email, addressed)
        store_response(workspace, key, body)
    return StoredResponse(body)


def check_email(workspace: Workspace, *, draft: Draft, limits: KeyLimits) -> NewEmail:
    """Run send_email and roll it back; return the email that would be sent. Raises the same errors."""
    email = check_draft(workspace, draft, limits)
    with transaction.atomic():
        refuse_suppressed(find_suppressed_among(workspace, email.addressed, stream=email.shared.stream))
        take_quota(workspace, units=quota_units([email]))
        transaction.set_rollback(True)
    return email


def check_emails(workspace: Workspace, *, drafts: Sequence[Draft | Problem], limits: KeyLimits) -> None:
    """Run the checks of accept_emails except suppressions and quota; write nothing. Raises the first problem."""
    _raise_first(check_drafts(workspace, drafts, limits))


def accept_emails(
    workspace: Workspace,
    *,
    drafts: Sequence[Draft | Problem],
    key: IdempotencyKey | None,
    limits: KeyLimits,
    all_or_nothing: bool,
    suppressed: SuppressionPolicy = SuppressionPolicy.REFUSE,
) -> StoredResponse:
    """Accept complete emails in one transaction; the body has `results`, one for each draft, in order.

    A result is the body of send_email, or `{"problem": …}` as in an error response.

    drafts: those of an entrance; a Problem stands for an email that it could not translate.
    all_or_nothing: raise the first problem instead of returning it.
    Raises QuotaExceeded if the quota does not cover all accepted emails; InvalidFields for a batch that takes no more
    emails; IdempotencyInProgress, IdempotencyKeyReuse.
    """
    checked = check_drafts(workspace, drafts, limits)
    if all_or_nothing:
        _raise_first(checked)
    with transaction.atomic() if key or _needs_several_statements(checked) else nullcontext():
        response = claim_key(workspace, key)
        if response:
            return response
        policy = SuppressionPolicy.ACCEPT if limits.is_test else suppressed
        judged, listed = judge_suppressed(workspace, checked, policy)
        if all_or_nothing:
            _raise_first(judged)
        accepted = [email for email in judged if isinstance(email, NewEmail)]
        join_batches(workspace, accepted)
        created_at = _write_all(workspace, accepted)
        body = {"results": [_result(email, created_at, listed) for email in judged]}
        store_response(workspace, key, body)
    return StoredResponse(body)


def send_bulk(
    workspace: Workspace, *, draft: BulkDraft, key: IdempotencyKey | None, limits: KeyLimits
) -> StoredResponse:
    """Accept one email for each recipient that is not suppressed: all of them, or none.

    Raises the errors of send_email; RecipientSuppressed only if every recipient is suppressed.
    """
    emails, warnings = check_bulk(workspace, draft, limits)
    with transaction.atomic():
        response = claim_key(workspace, key)
        if response:
            return response
        addressed = [recipient for email in emails for recipient in email.addressed]
        rejected = find_suppressed_among(workspace, addressed, stream=emails[0].shared.stream)
        if len(rejected) == len(emails):
            raise suppressed_problem(list(rejected.values()))
        accepted = [email for index, email in enumerate(emails) if index not in rejected]
        _write(workspace, emails=accepted, addressed=[])
        body = _bulk_body(emails, rejected, warnings)
        store_response(workspace, key, body)
    return StoredResponse(body)


def resend_email(
    workspace: Workspace,
    *,
    email: Email,
    key: IdempotencyKey | None,
    limits: KeyLimits,
    entrance: Entrance = Entrance.API,
) -> StoredResponse:
    """Accept a copy of an email, sent immediately. Domain, suppressions and quota are checked again.

    The time until its expiry begins anew.
    Raises the errors of send_email, ContentNotKept, and NotFound if the email is outside of the limits or retention has
    deleted it.
    """
    with transaction.atomic():
        response = claim_key(workspace, key)
        if response:
            return response
        copy = _copy(email, entrance, rank=check_copy(workspace, email, limits).rank)
        created_at = _write(workspace, emails=[copy], addressed=copy.addressed)
        body = _email_body(copy, created_at)
        store_response(workspace, key, body)
    return StoredResponse(body)


def quota_units(emails: Collection[NewEmail]) -> int:
    """Return the quota units that emails use (QUOTA_UNIT); test and diverted emails use none."""
    emails = [email for email in emails if email.shared.is_counted]
    if settings.QUOTA_UNIT == "recipient":
        return sum(len(email.recipients) for email in emails)
    return len(emails)


def _accept(workspace: Workspace, email: NewEmail, addressed: Sequence[FieldAddress]) -> dict[str, Any]:
    insert_attachments([email])
    return _email_body(email, _write(workspace, emails=[email], addressed=addressed))


def _write(workspace: Workspace, *, emails: Sequence[NewEmail], addressed: Sequence[FieldAddress]) -> datetime:
    """Refuse suppressed recipients and an exceeded quota, else insert emails and notify workers after the commit."""
    units, addresses = quota_units(emails), [spec for _, spec in addressed]
    inserted = insert_emails(workspace, emails=emails, addresses=addresses, units=units)
    refuse_suppressed(suppressed_among(addressed, inserted.suppressed))
    if not inserted.is_granted:
        raise_quota_exceeded(workspace, units=units)
    if emails[0].shared.status is EmailStatus.QUEUED:
        transaction.on_commit(_notify_workers)
    return inserted.created_at


def _needs_several_statements(checked: Sequence[NewEmail | Problem]) -> bool:
    """Return whether accepting takes more than the one statement that is atomic by itself."""
    emails = [email for email in checked if isinstance(email, NewEmail)]
    has_files_or_batch = any(email.files or email.shared.batch_id for email in emails)
    return has_files_or_batch or len({email.shared.status for email in emails}) > 1


def _raise_first(checked: Sequence[NewEmail | Problem]) -> None:
    """Raise the first problem, with the index of its email."""
    for index, problem in enumerate(checked):
        if isinstance(problem, Problem):
            problem.members.setdefault("index", index)
            raise problem


def _write_all(workspace: Workspace, emails: Sequence[NewEmail]) -> datetime | None:
    """Insert emails, with one statement for the immediate and one for the scheduled ones."""
    created_at = None
    insert_attachments(emails)
    for status in (EmailStatus.QUEUED, EmailStatus.SCHEDULED):
        if group := [email for email in emails if email.shared.status is status]:
            created_at = _write(workspace, emails=group, addressed=[])
    return created_at


def _result(email: NewEmail | Problem, created_at: datetime | None, listed: Mapping[str, list[str]]) -> dict[str, Any]:
    if isinstance(email, Problem):
        return {"problem": problem_members(email)}
    assert created_at is not None
    body = _email_body(email, created_at)
    return {**body, "suppressed": listed[email.id]} if email.id in listed else body


def _notify_workers() -> None:
    failpoint("emails.after_accept_commit")
    wakeup.notify_soon("emails")


def _email_body(email: NewEmail, created_at: datetime) -> dict[str, Any]:
    body = {"id": email.id, "status": email.shared.status.value, "createdAt": format_datetime(created_at)}
    return {**body, "warnings": email.warnings} if email.warnings else body


def _bulk_body(emails: Sequence[NewEmail], rejected: Collection[int], warnings: Warnings) -> dict[str, Any]:
    accepted = [(index, email) for index, email in enumerate(emails) if index not in rejected]
    body = {
        "queued": len(accepted),
        "ids": [email.id for _, email in accepted],
        "emails": [{"index": index, "to": email.to[0], "id": email.id} for index, email in accepted],
        "rejected": [
            {"index": index, "to": emails[index].to[0], "code": RecipientSuppressed.code} for index in rejected
        ],
    }
    return {**body, "warnings": warnings} if warnings else body


def _copy(email: Email, entrance: Entrance, *, rank: int) -> NewEmail:
    """Return a new email that shares the content and template version, which are immutable."""
    left_out = {"scheduled_for", "batch_id", "entrance", "expires_at", "deliver_within", "is_diverted"}
    shared = SharedFields(
        **{name: getattr(email, name) for name in SHARED_COLUMNS.keys() - left_out},
        deliver_within=email.seconds_to_expiry,
        entrance=entrance,
        rank=rank,
        is_diverted=diverts(is_test=email.is_test),
    )
    recipients = [NewRecipient(kind=old.kind, address=old.address) for old in email.recipients.all()]
    return NewEmail(
        shared=shared,
        to=email.to,
        cc=email.cc,
        bcc=email.bcc,
        subject=email.subject,
        metadata=email.metadata,
        template_data=email.template_data,
        recipients=recipients,
        addressed=[] if email.is_test else recipient_addresses(recipients),
    )
