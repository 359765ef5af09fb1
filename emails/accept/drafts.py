"""Drafts: validated requests to send email, before they become rows."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any

from django.conf import settings

from core.api.errors import InvalidFields
from core.delivery.message.compose import File
from core.lib.coded_texts import CodedText
from core.lib.email_addresses import Address, normalize_address
from core.workspaces.key_limits import KeyLimits
from domains.services import SendingDomain
from emails.accept.content_warnings import Warnings
from emails.accept.insertion import SHARED_COLUMNS, FieldAddress, NewEmail, NewRecipient, SharedFields
from emails.models import Entrance, Recipient
from emails.send_options import DOMAIN_SETTINGS, OPTIONS_OF_SENSITIVE, SendOptions
from streams.models import Stream
from templates_app.content import RenderedContent
from templates_app.models import Template


@dataclass(frozen=True)
class Draft(SendOptions):
    """One email as requested.

    template: an id or an alias; with a template, subject may be None.
    envelope: the lower-case addr-specs that receive the message, where To and Cc name others too; None means all.
    reply_tracking: whether answers are matched.
    answers: the received email to answer.
    reply_domain: the domain of the addresses in Reply-To, one for each recipient (emails.sending.reply_address); None
    without reply_tracking, and until complete_drafts (emails.accept.answers).
    stream: None for that of the key.
    deliver_within: seconds after acceptance or scheduled_for; not with expires_at.
    api_key_id: of the key that sends it; None for that of the limits with which it is accepted.
    """

    sender: Address
    to: tuple[Address, ...]
    subject: str | None
    html: str = ""
    text: str = ""
    cc: tuple[Address, ...] = ()
    bcc: tuple[Address, ...] = ()
    reply_to: tuple[Address, ...] = ()
    template: str | None = None
    template_data: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    files: tuple[File, ...] = ()
    scheduled_for: datetime | None = None
    entrance: Entrance = Entrance.API
    batch_id: str | None = None
    envelope: frozenset[str] | None = None
    reply_tracking: bool = field(default=False, kw_only=True)
    answers: str | None = field(default=None, kw_only=True)
    reply_domain: str | None = field(default=None, kw_only=True)
    deliver_within: int | None = field(default=None, kw_only=True)
    expires_at: datetime | None = field(default=None, kw_only=True)
    api_key_id: str | None = field(default=None, kw_only=True)
    # A request need not name it.
    stream: str | None = field(default=None, kw_only=True)  # type: ignore[assignment]

    def is_recipient(self, address: Address) -> bool:
        """Return whether an address of to, cc or bcc receives the message."""
        return self.envelope is None or address.spec.lower() in self.envelope

    def field_addresses(self) -> Iterator[FieldAddress]:
        """Yield every recipient's addr-spec with its field, such as `cc[0]`."""
        for name in ("to", "cc", "bcc"):
            for index, address in enumerate(getattr(self, name)):
                if self.is_recipient(address):
                    yield f"{name}[{index}]", address.spec


@dataclass(frozen=True)
class BulkRecipientDraft:
    to: Address
    template_data: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] | None = None
    locale: str | None = None


@dataclass(frozen=True)
class BulkDraft:
    """One template for many recipients, as `POST /v1/emails/batch` requests it; they share all other fields.

    locale: of the recipients without one.
    """

    sender: Address
    template: str
    recipients: tuple[BulkRecipientDraft, ...]
    subject: str | None = None
    reply_to: tuple[Address, ...] = ()
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] | None = None
    scheduled_for: datetime | None = None
    stream: str | None = None
    locale: str | None = None
    sensitive: bool = False
    tls: str | None = None
    deliver_within: int | None = None
    expires_at: datetime | None = None

    def metadata_for(self, recipient: BulkRecipientDraft) -> dict[str, Any] | None:
        """Return the shared metadata merged with that of one recipient."""
        return {**(self.metadata or {}), **(recipient.metadata or {})} or None


# The fields of a draft that are columns of the same name.
SHARED_NAMES = SHARED_COLUMNS.keys() & {column.name for column in fields(Draft)} - {"sender", "reply_to", "stream"}


def shared_fields(
    draft: Draft | BulkDraft,
    *,
    domain: SendingDomain,
    stream: Stream,
    template: Template | None,
    limits: KeyLimits,
    content_id: str | None = None,
    locale_used: str | None = None,
) -> SharedFields:
    """Return the fields of a draft that do not depend on its recipients.

    limits: those of the API key, which the emails remember.
    locale_used: the language of the rendered texts.
    The key or the stream may require approval.
    An email of a sensitive stream or template is sensitive, and cannot wait for approval: raises InvalidFields.
    One without an expiry has that of the template, else of the stream.
    An option that the draft leaves out is off if the domain has switched it off, else as the stream has it.
    """
    values = vars(draft)
    is_sensitive = draft.sensitive or stream.sensitive or bool(template and template.sensitive)
    needs_approval = limits.needs_approval or bool(stream.approval)
    if is_sensitive and needs_approval:
        detail = CodedText("emails.approval_needs_content")
        raise InvalidFields([{"field": "sensitive", "code": "needs_approval", "detail": detail}])
    given = {name: value for name in SHARED_NAMES if (value := values.get(name)) is not None}
    switched_off = {option: False for option, setting in DOMAIN_SETTINGS.items() if not getattr(domain, setting)}
    options = given | OPTIONS_OF_SENSITIVE if is_sensitive else given
    usual_seconds = (template and template.deliver_within) or stream.deliver_within
    if usual_seconds and not (draft.deliver_within or draft.expires_at):
        options = {**options, "deliver_within": usual_seconds}
    return SharedFields(
        **{"api_key_id": limits.key_id or None, **stream.email_defaults, **switched_off, **options},
        stream=stream.slug,
        rank=stream.rank,
        needs_approval=needs_approval,
        content_hours=0 if is_sensitive else stream.content_retention,
        sender=str(draft.sender),
        from_domain=draft.sender.domain,
        reply_to=", ".join(map(str, draft.reply_to)) or None,
        content_id=content_id,
        template_version_id=template.version_id if template else None,
        template_set_id=template.set_id if template else None,
        locale_used=locale_used,
        template_id=template.id if template else None,
        is_test=limits.is_test,
        is_diverted=diverts(is_test=limits.is_test),
    )


def diverts(*, is_test: bool) -> bool:
    """Return whether the messages of an email that is accepted now are captured or redirected (RECIPIENTS)."""
    return settings.RECIPIENTS.diversion is not None and not is_test


def new_email(draft: Draft, *, rendered: RenderedContent, shared: SharedFields, warnings: Warnings) -> NewEmail:
    """Return the rows of a draft. A repeated address is kept once, at its first position."""
    seen: set[str] = set()
    to, cc, bcc = (list(_unseen(group, seen)) for group in (draft.to, draft.cc, draft.bcc))
    kinds = zip(Recipient.RecipientType, (to, cc, bcc), strict=True)
    return NewEmail(
        shared=shared,
        to=[str(address) for address in to],
        cc=[str(address) for address in cc],
        bcc=[str(address) for address in bcc],
        subject=rendered.subject,
        metadata=draft.metadata,
        template_data=json.dumps(draft.template_data or {}, ensure_ascii=False) if draft.template else None,
        recipients=[
            NewRecipient(kind, address.spec) for kind, group in kinds for address in filter(draft.is_recipient, group)
        ],
        addressed=[] if shared.is_test else list(draft.field_addresses()),
        rendered=rendered,
        files=draft.files,
        warnings=warnings,
    )


def bulk_email(draft: BulkDraft, index: int, *, subject: str, shared: SharedFields) -> NewEmail:
    """Return the rows of the email to one recipient of a draft."""
    recipient = draft.recipients[index]
    return NewEmail(
        shared=shared,
        to=[str(recipient.to)],
        cc=[],
        bcc=[],
        subject=subject,
        metadata=draft.metadata_for(recipient),
        template_data=json.dumps(recipient.template_data, ensure_ascii=False),
        recipients=[NewRecipient(Recipient.RecipientType.TO, recipient.to.spec)],
        addressed=[] if shared.is_test else [(f"recipients[{index}].to", recipient.to.spec)],
    )


def _unseen(addresses: Iterable[Address], seen: set[str]) -> Iterator[Address]:
    for address in addresses:
        key = normalize_address(address.spec)
        if key not in seen:
            seen.add(key)
            yield address
