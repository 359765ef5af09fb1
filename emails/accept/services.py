"""Acceptance of emails. A call that returns has committed everything; a call that raises has written nothing."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction

from api.errors import NotFound
from domains.services import check_sending_domain
from emails.accept.drafts import BatchDraft, Draft, FieldAddress, batch_email, new_email, shared_fields
from emails.accept.idempotency import IdempotencyKey, StoredResponse, claim_key, store_response
from emails.accept.insertion import NewContent, NewEmail, NewRecipient, SharedFields, insert_attachments, insert_emails
from emails.models import Email, Entrance
from emails.rendered_content import (
    Warnings,
    compile_with_subject,
    missing_variable_warnings,
    render_compiled,
)
from emails.states import EmailStatus
from lib.datetimes import format_datetime
from lib.worker import wakeup
from lib.worker.failpoints import failpoint
from suppressions.errors import RecipientSuppressed
from suppressions.models import normalize_address
from suppressions.services import SuppressionMatch, find_suppressed
from templates_app.errors import MissingTemplateVariables
from templates_app.language.rendering import RenderBudget
from templates_app.services import RenderedContent, find_template, version_content
from workspaces.models import Workspace
from workspaces.quota import raise_quota_exceeded, take_quota

CONTENT_IGNORED = {
    "code": "content_ignored",
    "message": "html and text come from the template. Those of the request were ignored.",
}
DATA_UNUSED = {
    "code": "template_data_unused",
    "message": "templateData has no effect without templateId.",
}


@dataclass(frozen=True)
class CheckedEmail:
    """An email that passed all checks except suppressions and quota, which the insert checks."""

    shared: SharedFields
    email: NewEmail
    contents: list[NewContent]
    rendered: RenderedContent
    warnings: Warnings


def send_email(workspace: Workspace, *, draft: Draft, key: IdempotencyKey | None) -> StoredResponse:
    """Accept one email and notify the workers.

    Raises DomainNotRegistered, DomainNotVerified, TemplateNotFound, TemplateSyntaxInvalid, MissingTemplateVariables,
    TemplateOutputTooLarge, RecipientSuppressed, QuotaExceeded, IdempotencyInProgress, IdempotencyKeyReuse.
    """
    # Rendered before the transaction opens: a slow template must not hold locks or an idle transaction.
    checked = _check(workspace, draft)
    if key is None and not draft.files:
        # The only statement that writes is atomic by itself.
        return StoredResponse(_accept(workspace, draft, checked))
    with transaction.atomic():
        response = claim_key(workspace, key)
        if response:
            return response
        body = _accept(workspace, draft, checked)
        store_response(workspace, key, body)
    return StoredResponse(body)


def check_email(workspace: Workspace, *, draft: Draft) -> CheckedEmail:
    """Run send_email and roll it back; return the email that would be sent. Raises the same errors."""
    checked = _check(workspace, draft)
    addressed = list(draft.field_addresses())
    with transaction.atomic():
        _refuse_suppressed(addressed, find_suppressed(workspace.id, [spec for _, spec in addressed]))
        take_quota(workspace, units=quota_units([checked.email]))
        transaction.set_rollback(True)
    return checked


def send_batch(workspace: Workspace, *, batch: BatchDraft, key: IdempotencyKey | None) -> StoredResponse:
    """Accept one email for each recipient that is not suppressed: all of them, or none.

    Raises the errors of send_email; RecipientSuppressed only if every recipient is suppressed.
    """
    check_sending_domain(workspace, name=batch.sender.domain)
    shared, emails, warnings = _render_batch(workspace, batch)
    with transaction.atomic():
        response = claim_key(workspace, key)
        if response:
            return response
        addressed = list(batch.field_addresses())
        rejected = _suppressed_among(addressed, find_suppressed(workspace.id, [spec for _, spec in addressed]))
        accepted = {index: email for index, email in enumerate(emails) if index not in rejected}
        if not accepted:
            raise _suppressed(list(rejected.values()))
        _write(workspace, shared=shared, emails=list(accepted.values()), contents=[], addressed=[])
        body = _batch_body(accepted, rejected, batch, warnings)
        store_response(workspace, key, body)
    return StoredResponse(body)


def resend_email(
    workspace: Workspace, *, email: Email, key: IdempotencyKey | None, entrance: Entrance = Entrance.API
) -> StoredResponse:
    """Accept a copy of an email, sent immediately. Domain, suppressions and quota are checked again.

    Raises the errors of send_email, and NotFound if retention has deleted the email.
    """
    with transaction.atomic():
        response = claim_key(workspace, key)
        if response:
            return response
        _lock_email(email)
        check_sending_domain(workspace, name=email.from_domain)
        shared, copy = _copy(email, entrance)
        addressed = [(recipient.kind, recipient.address) for recipient in copy.recipients]
        created_at = _write(workspace, shared=shared, emails=[copy], contents=[], addressed=addressed)
        body = _email_body(copy, shared.status, created_at, [])
        store_response(workspace, key, body)
    return StoredResponse(body)


def quota_units(emails: Collection[NewEmail]) -> int:
    """Return the quota units that emails use (QUOTA_UNIT)."""
    if settings.QUOTA_UNIT == "recipient":
        return sum(len(email.recipients) for email in emails)
    return len(emails)


def _accept(workspace: Workspace, draft: Draft, checked: CheckedEmail) -> dict[str, Any]:
    addressed = list(draft.field_addresses())
    created_at = _write(
        workspace, shared=checked.shared, emails=[checked.email], contents=checked.contents, addressed=addressed
    )
    return _email_body(checked.email, checked.shared.status, created_at, checked.warnings)


def _check(workspace: Workspace, draft: Draft) -> CheckedEmail:
    """Check domain and template (docs/specification.md, Order of checks)."""
    check_sending_domain(workspace, name=draft.sender.domain)
    return _from_template(workspace, draft) if draft.template else _from_draft(draft)


def _from_draft(draft: Draft) -> CheckedEmail:
    content = NewContent(draft.html, draft.text, draft.files)
    subject = draft.subject or ""
    email = new_email(draft, subject=subject)
    warnings = [DATA_UNUSED] if draft.template_data is not None else []
    rendered = RenderedContent(subject, draft.html, draft.text)
    return CheckedEmail(shared_fields(draft, content_id=content.id), email, [content], rendered, warnings)


def _from_template(workspace: Workspace, draft: Draft) -> CheckedEmail:
    template = find_template(workspace, draft.template or "")
    compiled = compile_with_subject(version_content(template.version), subject=draft.subject)
    rendered = render_compiled(compiled, draft.template_data or {})
    if rendered.missing and template.strict_variables:
        raise _missing(rendered.missing)
    contents = [NewContent("", "", draft.files)] if draft.files else []
    content_id = contents[0].id if contents else None
    shared = shared_fields(draft, content_id=content_id, version_id=template.version_id, template_id=template.id)
    email = new_email(draft, subject=rendered.subject)
    ignored = [CONTENT_IGNORED] if draft.html or draft.text else []
    return CheckedEmail(shared, email, contents, rendered, [*ignored, *missing_variable_warnings(rendered.missing)])


def _render_batch(workspace: Workspace, batch: BatchDraft) -> tuple[SharedFields, list[NewEmail], Warnings]:
    template = find_template(workspace, batch.template)
    compiled = compile_with_subject(version_content(template.version), subject=batch.subject)
    missing: dict[str, list[int]] = {}
    emails = []
    budget = RenderBudget()
    for index, recipient in enumerate(batch.recipients):
        rendered = render_compiled(compiled, recipient.template_data, field=f"recipients[{index}]", budget=budget)
        for name in rendered.missing:
            missing.setdefault(name, []).append(index)
        emails.append(batch_email(batch, recipient, subject=rendered.subject))
    if missing and template.strict_variables:
        raise _missing(tuple(missing), indexes=sorted({index for indexes in missing.values() for index in indexes}))
    shared = shared_fields(batch, version_id=template.version_id, template_id=template.id)
    return shared, emails, missing_variable_warnings(missing)


def _write(
    workspace: Workspace,
    *,
    shared: SharedFields,
    emails: Sequence[NewEmail],
    contents: Sequence[NewContent],
    addressed: Sequence[FieldAddress],
) -> datetime:
    """Refuse suppressed recipients and an exceeded quota, else insert emails and notify workers after the commit."""
    units, addresses = quota_units(emails), [spec for _, spec in addressed]
    insert_attachments(contents)
    inserted = insert_emails(
        workspace, shared=shared, emails=emails, contents=contents, addresses=addresses, units=units
    )
    _refuse_suppressed(addressed, inserted.suppressed)
    if not inserted.is_granted:
        raise_quota_exceeded(workspace, units=units)
    if shared.status is EmailStatus.QUEUED:
        transaction.on_commit(_notify_workers)
    return inserted.created_at


def _notify_workers() -> None:
    failpoint("emails.after_accept_commit")
    wakeup.notify_soon("emails")


def _email_body(email: NewEmail, status: EmailStatus, created_at: datetime, warnings: Warnings) -> dict[str, Any]:
    body = {"id": email.id, "status": status.value, "createdAt": format_datetime(created_at)}
    return {**body, "warnings": warnings} if warnings else body


def _batch_body(
    accepted: dict[int, NewEmail], rejected: Collection[int], batch: BatchDraft, warnings: Warnings
) -> dict[str, Any]:
    body = {
        "queued": len(accepted),
        "ids": [email.id for email in accepted.values()],
        "emails": [{"index": index, "to": email.to[0], "id": email.id} for index, email in accepted.items()],
        "rejected": [
            {"index": index, "to": str(batch.recipients[index].to), "code": RecipientSuppressed.code}
            for index in rejected
        ],
    }
    return {**body, "warnings": warnings} if warnings else body


def _lock_email(email: Email) -> None:
    """Lock the email, so that retention cannot delete its content before the copy refers to it."""
    if not Email.objects.select_for_update(no_key=True).filter(id=email.id).values_list("id"):
        raise NotFound("Not found in this workspace.")


def _copy(email: Email, entrance: Entrance) -> tuple[SharedFields, NewEmail]:
    """Return a new email that shares the content and template version, which are immutable."""
    shared = SharedFields(
        sender=email.sender,
        from_domain=email.from_domain,
        reply_to=email.reply_to,
        tags=email.tags,
        content_id=email.content_id,
        version_id=email.template_version_id,
        template_id=email.template_id,
        headers=email.headers,
        track_opens=email.track_opens,
        track_clicks=email.track_clicks,
        entrance=entrance,
    )
    copy = NewEmail(
        to=email.to,
        cc=email.cc,
        bcc=email.bcc,
        subject=email.subject,
        metadata=email.metadata,
        template_data=email.template_data,
        recipients=[NewRecipient(kind=old.kind, address=old.address) for old in email.recipients.all()],
    )
    return shared, copy


def _missing(variables: tuple[str, ...], **members: Any) -> MissingTemplateVariables:
    detail = (
        f"The data has no value for {', '.join(variables)}, and the template has strictVariables. "
        "Add a value or a default."
    )
    return MissingTemplateVariables(detail, variables=list(variables), **members)


def _refuse_suppressed(addressed: Sequence[FieldAddress], found: Mapping[str, SuppressionMatch]) -> None:
    suppressed = _suppressed_among(addressed, found)
    if suppressed:
        raise _suppressed(list(suppressed.values()))


def _suppressed_among(
    addressed: Sequence[FieldAddress], found: Mapping[str, SuppressionMatch]
) -> dict[int, dict[str, str]]:
    """Return the error entry of each suppressed address, by its index among the addressed."""
    return {
        index: {"email": spec, "field": field, "reason": match.reason, "suppressionId": match.id}
        for index, (field, spec) in enumerate(addressed)
        if (match := found.get(normalize_address(spec)))
    }


def _suppressed(entries: Sequence[dict[str, str]]) -> RecipientSuppressed:
    first = entries[0]
    subject = f"{first['email']} and {len(entries) - 1} more are" if len(entries) > 1 else f"{first['email']} is"
    detail = f"{subject} on the suppression list ({first['reason']})."
    return RecipientSuppressed(detail, recipients=entries)
