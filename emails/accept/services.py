"""Accept emails. A call that returns has committed everything; one that raises has written nothing."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction

from api.errors import NotFound
from api.fields import wire_time
from domains.services import check_sending_domain
from emails.accept.drafts import Addressed, BatchDraft, Draft, batch_email, new_email, shared_by
from emails.accept.idempotency import Answer, Key, claim_key, keep_answer
from emails.accept.insertion import NewContent, NewEmail, NewRecipient, Shared, insert_attachments, insert_emails
from emails.models import Email
from emails.rendered_content import RenderedContent, Warnings, compile_wording, render_wording, warn_of_missing
from emails.states import State
from lib.worker import wakeup
from lib.worker.failpoints import failpoint
from suppressions.errors import RecipientSuppressed
from suppressions.models import key_of
from suppressions.services import Block, blocked
from templates_app.errors import MissingTemplateVariables
from templates_app.services import content_of, find_template
from workspaces.models import Workspace
from workspaces.quota import refuse_quota, take_quota

CONTENT_IGNORED = {
    "code": "content_ignored",
    "message": "html and text are the template's; those of the request were ignored.",
}
DATA_UNUSED = {
    "code": "template_data_unused",
    "message": "templateData was given without templateId; nothing was rendered.",
}


@dataclass(frozen=True)
class _Ready:
    """An email that passed the checks but suppression and quota, which are asked as it is written."""

    shared: Shared
    email: NewEmail
    contents: list[NewContent]
    wording: RenderedContent
    warnings: Warnings


def send_email(workspace: Workspace, *, draft: Draft, key: Key | None) -> Answer:
    """Accept one email and ring for the workers.

    Raises DomainNotRegistered, DomainNotVerified, TemplateNotFound, TemplateSyntaxInvalid, MissingTemplateVariables,
    TemplateOutputTooLarge, RecipientSuppressed, QuotaExceeded, IdempotencyInProgress, IdempotencyKeyReuse.
    """
    if key is None and not draft.files:
        # The one statement that writes is a transaction of its own.
        return Answer(_accept(workspace, draft))
    with transaction.atomic():
        faster = claim_key(workspace, key)
        if faster:
            return faster
        body = _accept(workspace, draft)
        keep_answer(workspace, key, body)
    return Answer(body)


def check_email(workspace: Workspace, *, draft: Draft) -> dict[str, Any]:
    """Do all that send_email does and take it back; return what would be sent. Raises what it raises."""
    with transaction.atomic():
        ready = _check(workspace, draft)
        addressed = list(draft.addressed())
        _refuse_suppressed(addressed, blocked(workspace.id, [spec for _, spec in addressed]))
        take_quota(workspace, units=units_of([ready.email]))
        transaction.set_rollback(True)
    wording = ready.wording
    texts = {"subject": wording.subject, "html": wording.html, "text": wording.text}
    return {"valid": True, **texts, "warnings": ready.warnings}


def send_batch(workspace: Workspace, *, batch: BatchDraft, key: Key | None) -> Answer:
    """Accept an email for each recipient that is not suppressed: all of them, or none.

    Raises what send_email raises; RecipientSuppressed only when nobody is left.
    """
    with transaction.atomic():
        faster = claim_key(workspace, key)
        if faster:
            return faster
        check_sending_domain(workspace, name=batch.sender.domain)
        shared, emails, warnings = _render_batch(workspace, batch)
        addressed = list(batch.addressed())
        rejected = _suppressed_among(addressed, blocked(workspace.id, [spec for _, spec in addressed]))
        accepted = {index: email for index, email in enumerate(emails) if index not in rejected}
        if not accepted:
            raise _suppressed(list(rejected.values()))
        _write(workspace, shared=shared, emails=list(accepted.values()), contents=[], addressed=[])
        body = _batch_answer(accepted, rejected, batch, warnings)
        keep_answer(workspace, key, body)
    return Answer(body)


def resend_email(workspace: Workspace, *, email: Email, key: Key | None) -> Answer:
    """Accept a copy of an email, to be sent at once; suppression, domain and quota are checked again.

    Raises what send_email raises, and NotFound when retention is deleting it.
    """
    with transaction.atomic():
        faster = claim_key(workspace, key)
        if faster:
            return faster
        _hold(email)
        check_sending_domain(workspace, name=email.from_domain)
        shared, copy = _copy(email)
        addressed = [(recipient.kind, recipient.address) for recipient in copy.recipients]
        created_at = _write(workspace, shared=shared, emails=[copy], contents=[], addressed=addressed)
        body = _answer(copy, shared.status, created_at, [])
        keep_answer(workspace, key, body)
    return Answer(body)


def units_of(emails: Collection[NewEmail]) -> int:
    """Return what emails cost of the quota (QUOTA_UNIT)."""
    if settings.QUOTA_UNIT == "recipient":
        return sum(len(email.recipients) for email in emails)
    return len(emails)


def _accept(workspace: Workspace, draft: Draft) -> dict[str, Any]:
    ready = _check(workspace, draft)
    addressed = list(draft.addressed())
    created_at = _write(
        workspace, shared=ready.shared, emails=[ready.email], contents=ready.contents, addressed=addressed
    )
    return _answer(ready.email, ready.shared.status, created_at, ready.warnings)


def _check(workspace: Workspace, draft: Draft) -> _Ready:
    """Check domain and template, in the order of CONTRACT section 1."""
    check_sending_domain(workspace, name=draft.sender.domain)
    return _with_template(workspace, draft) if draft.template else _with_own_content(draft)


def _with_own_content(draft: Draft) -> _Ready:
    content = NewContent(draft.html, draft.text, draft.files)
    subject = draft.subject or ""
    email = new_email(draft, subject=subject)
    warnings = [DATA_UNUSED] if draft.template_data is not None else []
    wording = RenderedContent(subject, draft.html, draft.text)
    return _Ready(shared_by(draft, content_id=content.id), email, [content], wording, warnings)


def _with_template(workspace: Workspace, draft: Draft) -> _Ready:
    template = find_template(workspace, draft.template or "")
    compiled = compile_wording(content_of(template.version), subject=draft.subject)
    rendered = render_wording(compiled, draft.template_data or {})
    if rendered.missing and template.strict_variables:
        raise _missing(rendered.missing)
    contents = [NewContent("", "", draft.files)] if draft.files else []
    content_id = contents[0].id if contents else None
    shared = shared_by(draft, content_id=content_id, version_id=template.version_id, template_id=template.id)
    email = new_email(draft, subject=rendered.subject)
    ignored = [CONTENT_IGNORED] if draft.html or draft.text else []
    wording = RenderedContent(rendered.subject, rendered.html, rendered.text)
    return _Ready(shared, email, contents, wording, [*ignored, *warn_of_missing(rendered.missing)])


def _render_batch(workspace: Workspace, batch: BatchDraft) -> tuple[Shared, list[NewEmail], Warnings]:
    template = find_template(workspace, batch.template)
    compiled = compile_wording(content_of(template.version), subject=batch.subject)
    missing: dict[str, list[int]] = {}
    emails = []
    for index, recipient in enumerate(batch.recipients):
        rendered = render_wording(compiled, recipient.template_data, field=f"recipients[{index}]")
        for name in rendered.missing:
            missing.setdefault(name, []).append(index)
        emails.append(batch_email(batch, recipient, subject=rendered.subject))
    if missing and template.strict_variables:
        raise _missing(tuple(missing), indexes=sorted({index for indexes in missing.values() for index in indexes}))
    shared = shared_by(batch, version_id=template.version_id, template_id=template.id)
    return shared, emails, warn_of_missing(missing)


def _write(
    workspace: Workspace,
    *,
    shared: Shared,
    emails: Sequence[NewEmail],
    contents: Sequence[NewContent],
    addressed: Sequence[Addressed],
) -> datetime:
    """Refuse what is suppressed or beyond the quota, else write emails, and ring after the commit."""
    units, addresses = units_of(emails), [spec for _, spec in addressed]
    insert_attachments(contents)
    written = insert_emails(
        workspace, shared=shared, emails=emails, contents=contents, addresses=addresses, units=units
    )
    _refuse_suppressed(addressed, written.blocked)
    if not written.is_granted:
        refuse_quota(workspace, units=units)
    if shared.status is State.QUEUED:
        transaction.on_commit(_ring)
    return written.created_at


def _ring() -> None:
    failpoint("emails.after_accept_commit")
    wakeup.ring_soon("emails")


def _answer(email: NewEmail, status: State, created_at: datetime, warnings: Warnings) -> dict[str, Any]:
    body = {"id": email.id, "status": status.value, "createdAt": wire_time(created_at)}
    return {**body, "warnings": warnings} if warnings else body


def _batch_answer(
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


def _hold(email: Email) -> None:
    """Keep retention from the email while its content gets another user."""
    if not Email.objects.select_for_update(no_key=True).filter(id=email.id).values_list("id"):
        raise NotFound("There is nothing here, or it is not yours.")


def _copy(email: Email) -> tuple[Shared, NewEmail]:
    """Return a new email with the same content; content and version are immutable, so they are shared."""
    shared = Shared(
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
    detail = f"The template is strict, and the data has no value for {', '.join(variables)}."
    return MissingTemplateVariables(detail, variables=list(variables), **members)


def _refuse_suppressed(addressed: Sequence[Addressed], found: Mapping[str, Block]) -> None:
    told = _suppressed_among(addressed, found)
    if told:
        raise _suppressed(list(told.values()))


def _suppressed_among(addressed: Sequence[Addressed], found: Mapping[str, Block]) -> dict[int, dict[str, str]]:
    """Return what is told of each suppressed address, by its place among the addressed."""
    return {
        place: {"email": spec, "field": field, "reason": row.reason, "suppressionId": row.id}
        for place, (field, spec) in enumerate(addressed)
        if (row := found.get(key_of(spec)))
    }


def _suppressed(told: Sequence[dict[str, str]]) -> RecipientSuppressed:
    first = told[0]
    who = f"{first['email']} and {len(told) - 1} more are" if len(told) > 1 else f"{first['email']} is"
    detail = f"{who} on the suppression list ({first['reason']})."
    return RecipientSuppressed(detail, recipients=told)
