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
from emails.accept.allowed import apply_rules, apply_to_all, not_allowed_problem, refuse_recipients, refused_entries
from emails.accept.batches import join_batches
from emails.accept.capped import AppliedCaps
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
from emails.errors import RecipientCapped
from emails.models import APPROVAL_PERIOD, Email, Entrance, Held
from emails.states import EmailStatus
from streams.models import Stream
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
    suppressed: also for recipients who are not allowed.
    Raises the errors of check_draft, and RecipientNotAllowed, RecipientSuppressed, QuotaExceeded,
    IdempotencyInProgress, IdempotencyKeyReuse.
    """
    (email,) = apply_to_all(workspace, [check_draft(workspace, draft, limits)], limits)
    addressed = [] if suppressed is SuppressionPolicy.ACCEPT else email.addressed
    if suppressed is not SuppressionPolicy.ACCEPT:
        refuse_recipients(email)
    caps = AppliedCaps.of(workspace, limits)
    if key is None and not draft.files and not caps:
        # The only statement that writes is atomic by itself.
        return StoredResponse(_accept(workspace, email, addressed))
    with transaction.atomic():
        response = claim_key(workspace, key)
        if response:
            return response
        body = _accept(workspace, caps.count_one(email), addressed)
        store_response(workspace, key, body)
    return StoredResponse(body)


def check_email(workspace: Workspace, *, draft: Draft, limits: KeyLimits) -> NewEmail:
    """Run send_email and roll it back; return the email that would be sent. Raises the same errors."""
    (email,) = apply_to_all(workspace, [check_draft(workspace, draft, limits)], limits)
    refuse_recipients(email)
    with transaction.atomic():
        refuse_suppressed(find_suppressed_among(workspace, email.addressed, stream=email.shared.stream))
        AppliedCaps.of(workspace, limits).count_one(email)
        take_quota(workspace, units=quota_units([email]))
        transaction.set_rollback(True)
    return email


def check_emails(workspace: Workspace, *, drafts: Sequence[Draft | Problem], limits: KeyLimits) -> None:
    """Run the checks of accept_emails except recipients and quota; write nothing. Raises the first problem."""
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
    checked = apply_rules(workspace, check_drafts(workspace, drafts, limits), limits)
    if all_or_nothing:
        _raise_first(checked)
    caps = AppliedCaps.of(workspace, limits)
    with transaction.atomic() if key or caps or _needs_several_statements(checked) else nullcontext():
        response = claim_key(workspace, key)
        if response:
            return response
        policy = SuppressionPolicy.ACCEPT if limits.is_test else suppressed
        judged, listed = judge_suppressed(workspace, checked, policy)
        judged = caps.count(judged)
        if all_or_nothing:
            _raise_first(judged)
        accepted = _without_problems(judged)
        join_batches(workspace, accepted)
        created_at = _write_all(workspace, accepted)
        body = {"results": [_result(email, created_at, listed) for email in judged]}
        store_response(workspace, key, body)
    return StoredResponse(body)


def send_bulk(
    workspace: Workspace, *, draft: BulkDraft, key: IdempotencyKey | None, limits: KeyLimits
) -> StoredResponse:
    """Accept one email for each recipient that is allowed and not suppressed: all of them, or none.

    Raises the errors of send_email; RecipientNotAllowed and RecipientSuppressed only if no recipient is left.
    """
    checked, warnings = check_bulk(workspace, draft, limits)
    emails = apply_to_all(workspace, checked, limits)
    with transaction.atomic():
        response = claim_key(workspace, key)
        if response:
            return response
        addressed = [recipient for email in emails for recipient in email.addressed]
        suppressed = find_suppressed_among(workspace, addressed, stream=emails[0].shared.stream)
        rejected: dict[int, Problem] = {index: suppressed_problem([entry]) for index, entry in suppressed.items()}
        for index, email in enumerate(emails):
            if entries := refused_entries(email):
                rejected[index] = not_allowed_problem(entries)
        judged = AppliedCaps.of(workspace, limits).count(
            [rejected.get(index, email) for index, email in enumerate(emails)]
        )
        rejected = {index: one for index, one in enumerate(judged) if isinstance(one, Problem)}
        if len(rejected) == len(emails):
            raise _problem_of_all(list(rejected.values()))
        created_at = _write_all(workspace, _without_problems(judged))
        assert created_at
        body = _bulk_body(emails, rejected, warnings, created_at)
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
        checked = _copy(email, entrance, limits, stream=check_copy(workspace, email, limits))
        (copy,) = apply_to_all(workspace, [checked], limits)
        refuse_recipients(copy)
        copy = AppliedCaps.of(workspace, limits).count_one(copy)
        created_at = _write(workspace, emails=[copy], addressed=copy.addressed)
        body = _email_body(copy, created_at)
        store_response(workspace, key, body)
    return StoredResponse(body)


def quota_units(emails: Collection[NewEmail]) -> int:
    """Return the quota units that emails use (QUOTA_UNIT); test and diverted emails use none."""
    emails = [email for email in emails if email.shared.is_counted]
    if settings.QUOTA_UNIT == "recipient":
        return sum(not recipient.diversion for email in emails for recipient in email.recipients)
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
    if not all(email.shared.is_delayed for email in emails):
        transaction.on_commit(_notify_workers)
    return inserted.created_at


def _needs_several_statements(checked: Sequence[NewEmail | Problem]) -> bool:
    """Return whether accepting takes more than the one statement that is atomic by itself."""
    emails = _without_problems(checked)
    has_files_or_batch = any(email.files or email.shared.batch_id for email in emails)
    return has_files_or_batch or len(_groups(emails)) > 1


def _raise_first(checked: Sequence[NewEmail | Problem]) -> None:
    """Raise the first problem, with the index of its email."""
    for index, problem in enumerate(checked):
        if isinstance(problem, Problem):
            problem.members.setdefault("index", index)
            raise problem


def _write_all(workspace: Workspace, emails: Sequence[NewEmail]) -> datetime | None:
    """Insert emails, with one statement for each of the groups."""
    created_at = None
    insert_attachments(emails)
    for group in _groups(emails):
        created_at = _write(workspace, emails=group, addressed=[])
    return created_at


def _groups(emails: Sequence[NewEmail]) -> list[list[NewEmail]]:
    """Return the emails that one statement can insert: the immediate or scheduled, counted or diverted ones."""
    groups: dict[tuple[EmailStatus, bool], list[NewEmail]] = {}
    for email in emails:
        groups.setdefault((email.shared.status, email.shared.is_diverted), []).append(email)
    return list(groups.values())


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
    body = {
        "id": email.id,
        "status": email.shared.status.value,
        "createdAt": format_datetime(created_at),
        **_held_members(email.shared, created_at),
    }
    return {**body, "warnings": email.warnings} if email.warnings else body


def _held_members(shared: SharedFields, created_at: datetime) -> dict[str, Any]:
    """Return `held` of the response to emails that wait for approval; nothing for others."""
    if not shared.needs_approval:
        return {}
    held = Held(created_at, created_at + APPROVAL_PERIOD)
    times = {"since": format_datetime(held.since), "expiresAt": format_datetime(held.expires_at)}
    return {"held": {"reason": held.reason, **times}}


def _bulk_body(
    emails: Sequence[NewEmail], rejected: Mapping[int, Problem], warnings: Warnings, created_at: datetime
) -> dict[str, Any]:
    """Return the body of send_bulk. rejected: problems by the index of the recipient."""
    accepted = [(index, email) for index, email in enumerate(emails) if index not in rejected]
    body = {
        "queued": len(accepted),
        "ids": [email.id for _, email in accepted],
        "emails": [{"index": index, "to": email.to[0], "id": email.id} for index, email in accepted],
        "rejected": [
            {"index": index, "to": emails[index].to[0], "code": problem.code, **_retry_at(problem)}
            for index, problem in rejected.items()
        ],
        **_held_members(emails[0].shared, created_at),
    }
    return {**body, "warnings": warnings} if warnings else body


def _problem_of_all(problems: Sequence[Problem]) -> Problem:
    """Return one problem for a batch of which no recipient is left: the first kind, with all of its recipients."""
    first = problems[0]
    entries = [entry for one in problems if one.code == first.code for entry in one.members["recipients"]]
    if isinstance(first, RecipientCapped):
        last = max((one for one in problems if one.code == first.code), key=lambda one: str(one.members["retryAt"]))
        last.members["recipients"] = entries
        return last
    return suppressed_problem(entries) if isinstance(first, RecipientSuppressed) else not_allowed_problem(entries)


def _retry_at(problem: Problem) -> dict[str, str]:
    return {"retryAt": problem.members["retryAt"]} if isinstance(problem, RecipientCapped) else {}


def _without_problems(emails: Sequence[NewEmail | Problem]) -> list[NewEmail]:
    return [email for email in emails if isinstance(email, NewEmail)]


def _copy(email: Email, entrance: Entrance, limits: KeyLimits, *, stream: Stream) -> NewEmail:
    """Return a new email that shares the content and template version, which are immutable.

    It waits for approval if the key that sends it again, or the stream, requires that.
    """
    left_out = {"scheduled_for", "batch_id", "api_key_id", "entrance", "expires_at", "deliver_within", "is_diverted"}
    shared = SharedFields(
        **{name: getattr(email, name) for name in SHARED_COLUMNS.keys() - left_out},
        deliver_within=email.seconds_to_expiry,
        entrance=entrance,
        rank=stream.rank,
        needs_approval=limits.needs_approval or bool(stream.approval),
        api_key_id=limits.key_id or None,
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
