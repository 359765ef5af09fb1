"""Emails as requested: the fields of one email and of a batch, and the rules that they satisfy together."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from rest_framework import serializers
from rest_framework.fields import empty

from core.api.fields import (
    OPTIONAL,
    AddressField,
    DeliverWithinField,
    EntriesField,
    FieldErrors,
    ObjectField,
    OptionField,
    RecipientField,
    StrictBooleanField,
    StrictSerializer,
    TextField,
)
from core.lib.datetimes import parse_datetime
from core.lib.email_addresses import InvalidAddress, parse_recipient
from emails.accept.drafts import BulkDraft, BulkRecipientDraft, Draft
from emails.accept.idempotency import MAX_LENGTH
from emails.accept.rules.attachments import FilesField
from emails.accept.rules.fields import (
    MAX_METADATA_BYTES,
    MAX_RECIPIENTS,
    MAX_SUBJECT_LENGTH,
    AddressListField,
    BodyField,
    EmailExpiryField,
    HeaderField,
    HeadersField,
    MetadataField,
    RecipientsField,
    ReplyToField,
    ScheduleField,
    TagsField,
)
from emails.errors import TooManyRecipients
from emails.models import TlsOption
from templates_app.language.locales import normalize_locale
from templates_app.serializers import LocaleField

MAX_BATCH = 500
NO_RECIPIENT = "This list must have 1 or more entries, unless cc or bcc has some."
# The usual forms of a recipient of a batch.
USUAL_RECIPIENT = {"to": str, "templateData": dict}
USUAL_WITH_LOCALE = {**USUAL_RECIPIENT, "locale": str}


class SharedInput(StrictSerializer):
    """The fields shared by send and batch."""

    locals()["from"] = AddressField(
        help_text="The sender: an address of a domain of the workspace, with or without a name."
    )
    replyTo = ReplyToField(**OPTIONAL, help_text="The address or addresses to which replies go.")
    tags = TagsField(
        required=False, help_text="Names for filters and statistics, such as `welcome`. Recipients do not see them."
    )
    metadata = MetadataField(**OPTIONAL, help_text=f"Custom data, at most {MAX_METADATA_BYTES:,} bytes.")
    stream = TextField(
        **OPTIONAL,
        max_length=40,
        help_text="The id of the email's stream; by default `main`, or the key's only stream.",
    )
    locale = LocaleField(
        **OPTIONAL,
        help_text="The language of the email, such as `de-AT`. It selects the texts of the template and the language "
        "of the unsubscribe link; without a template, it only says which language the content has.",
    )
    sensitive = StrictBooleanField(
        required=False,
        help_text="Whether nobody can read the content, from now on, and it is removed after the last outcome. Always "
        "true if the stream or the template is sensitive.",
    )
    tls = OptionField(
        TlsOption.values,
        **OPTIONAL,
        help_text="With `required`, the email is sent only over TLS to a verified mail host, and the next ones are "
        "asked for the same if the host supports it. By default as the sending domain has it.",
    )
    scheduledFor = ScheduleField(**OPTIONAL, help_text="A time in the future, at most 30 days ahead.")
    deliverWithin = DeliverWithinField(
        help_text="The seconds, 30 to 604,800, from acceptance or from `scheduledFor`, after which the email is not "
        "sent any more: it is `failed` with the reason `expired`. By default as the template, else the stream has it. "
        "Not with `expiresAt`.",
    )
    expiresAt = EmailExpiryField(
        **OPTIONAL,
        help_text="The time after which the email is not sent any more, in place of `deliverWithin`: later than "
        "`scheduledFor`, at most a year ahead.",
    )
    idempotencyKey = TextField(
        **OPTIONAL, max_length=MAX_LENGTH, help_text="Each key accepts one request per workspace."
    )

    def combination_errors(self, data: Mapping[str, Any]) -> FieldErrors:
        """Refuse two expiries, and one that is over before the email is due."""
        if data.get("expiresAt") is None:
            return {}
        if data.get("deliverWithin") is not None:
            detail = "Give deliverWithin or expiresAt, not both."
            return {"expiresAt": [serializers.ErrorDetail(detail, code="conflict")]}
        expires_at, scheduled_for = (parse_datetime(str(data.get(name))) for name in ("expiresAt", "scheduledFor"))
        if expires_at and scheduled_for and expires_at <= scheduled_for:
            detail = "expiresAt must be later than scheduledFor."
            return {"expiresAt": [serializers.ErrorDetail(detail, code="before_schedule")]}
        return {}

    def shared(self, values: dict[str, Any]) -> dict[str, Any]:
        return {
            "sender": values["from"],
            "reply_to": tuple(values.get("replyTo") or ()),
            "tags": tuple(values.get("tags") or ()),
            "metadata": values.get("metadata"),
            "stream": values.get("stream"),
            "locale": values.get("locale"),
            "sensitive": values.get("sensitive", False),
            "tls": values.get("tls"),
            "scheduled_for": values.get("scheduledFor"),
            "deliver_within": values.get("deliverWithin"),
            "expires_at": values.get("expiresAt"),
        }


class SendInput(SharedInput):
    """`POST /v1/emails/send`. The validated data is a Draft, and whether it is a dry run."""

    to = AddressListField(
        required=False,
        help_text="The recipients: one address, or a list of 1 to 50. Each of them sees all addresses in `to`. "
        "Required without `inReplyToId`; the list may be empty if `cc` or `bcc` has an address.",
    )
    cc = AddressListField(
        **OPTIONAL, help_text="Further recipients that everybody sees: one address, or a list of up to 50."
    )
    bcc = AddressListField(
        **OPTIONAL, help_text="Further recipients that nobody else sees: one address, or a list of up to 50."
    )
    envelope = RecipientsField(
        **OPTIONAL,
        help_text="Those addresses of `to`, `cc` and `bcc` that receive the email; by default all. The others are only "
        "shown, such as that of a mailing list.",
    )
    subject = HeaderField(
        max_length=MAX_SUBJECT_LENGTH,
        **OPTIONAL,
        help_text="The subject. Required without `templateId` and `inReplyToId`; it replaces the template's subject.",
    )
    html = BodyField(**OPTIONAL, help_text="The HTML content, at most 1 MiB. Ignored with `templateId`.")
    text = BodyField(
        **OPTIONAL,
        help_text="The plain-text content, at most 1 MiB. Generated from the HTML if absent. Ignored with "
        "`templateId`.",
    )
    templateId = TextField(**OPTIONAL, max_length=100, help_text="A template's id or alias.")
    templateData = ObjectField(**OPTIONAL)
    headers = HeadersField(**OPTIONAL)
    attachments = FilesField(
        **OPTIONAL, help_text="Files and inline images: at most 10, and 10 MiB in total after decoding."
    )
    trackOpens = StrictBooleanField(
        required=False, help_text="Whether opens are tracked with a pixel; by default as stream and domain have it."
    )
    trackClicks = StrictBooleanField(
        required=False,
        help_text="Whether clicks are tracked by rewriting links; by default as stream and domain have it.",
    )
    replyTracking = StrictBooleanField(
        required=False,
        help_text="Whether answers go to a signed address of this service and are matched to the email. Not with "
        "`replyTo`.",
    )
    inReplyToId = TextField(
        **OPTIONAL,
        max_length=40,
        help_text="The id of a received email that this one answers: recipient and subject are taken from it if they "
        "are absent.",
    )
    dryRun = StrictBooleanField(required=False, default=False, help_text="Check the request without sending.")

    def to_internal_value(self, data: Any) -> Any:
        for name in ("to", "cc", "bcc", "envelope", "replyTo"):
            _refuse_too_many(data, name, limit=MAX_RECIPIENTS)
        return super().to_internal_value(data)

    def combination_errors(self, data: Mapping[str, Any]) -> FieldErrors:
        """Require a recipient, content and a subject, unless a template or an answered email provides them."""
        missing = super().combination_errors(data)
        if "to" not in data and not data.get("inReplyToId"):
            missing["to"] = [_required("This field is required.")]
        if data.get("to") == [] and not data.get("cc") and not data.get("bcc"):
            missing["to"] = [serializers.ErrorDetail(NO_RECIPIENT, code="min_length")]
        if data.get("templateId"):
            return missing
        if data.get("subject") is None and not data.get("inReplyToId"):
            missing["subject"] = [_required("This field is required without templateId.")]
        if not data.get("html") and not data.get("text"):
            missing["html"] = [_required("Provide html, text or templateId.")]
        return missing

    def validate(self, attrs: dict[str, Any]) -> tuple[Draft, bool]:
        draft = Draft(
            to=tuple(attrs.get("to") or ()),
            cc=tuple(attrs.get("cc") or ()),
            bcc=tuple(attrs.get("bcc") or ()),
            subject=attrs.get("subject"),
            html=attrs.get("html") or "",
            text=attrs.get("text") or "",
            template=attrs.get("templateId"),
            template_data=attrs.get("templateData"),
            headers=attrs.get("headers") or {},
            files=tuple(attrs.get("attachments") or ()),
            track_opens=attrs.get("trackOpens"),
            track_clicks=attrs.get("trackClicks"),
            reply_tracking=attrs.get("replyTracking") or False,
            answers=attrs.get("inReplyToId"),
            envelope=_envelope(attrs),
            **self.shared(attrs),
        )
        return draft, attrs["dryRun"]


class BatchRecipientInput(StrictSerializer):
    to = RecipientField(help_text="The recipient: an address, with or without a name.")
    templateData = ObjectField(**OPTIONAL)
    metadata = MetadataField(**OPTIONAL, help_text="Custom data of this email, merged into the shared `metadata`.")
    locale = LocaleField(**OPTIONAL, help_text="The language of this email; by default that of the batch.")

    # A shortcut for the usual form, up to 500 times per batch (docs/performance.md).
    def run_validation(self, data: Any = empty) -> Any:
        types = {name: type(value) for name, value in data.items()} if isinstance(data, dict) else {}
        with suppress(InvalidAddress, ValueError):
            if types == USUAL_RECIPIENT:
                return {**data, "to": parse_recipient(data["to"])}
            if types == USUAL_WITH_LOCALE:
                locale = normalize_locale(data["locale"])
                return {**data, "to": parse_recipient(data["to"]), "locale": locale}
        return super().run_validation(data)


class BatchInput(SharedInput):
    """`POST /v1/emails/batch`. The validated data is a BulkDraft."""

    templateId = TextField(max_length=100, help_text="A template's id or alias.")
    subject = HeaderField(
        max_length=MAX_SUBJECT_LENGTH,
        **OPTIONAL,
        help_text="Overrides the template's subject and is rendered the same way.",
    )
    recipients = EntriesField(
        child=BatchRecipientInput(), min_length=1, help_text="The recipients, 1 to 500. Each receives a separate email."
    )

    def to_internal_value(self, data: Any) -> Any:
        _refuse_too_many(data, "recipients", limit=MAX_BATCH)
        _refuse_too_many(data, "replyTo", limit=MAX_RECIPIENTS)
        return super().to_internal_value(data)

    def validate(self, attrs: dict[str, Any]) -> BulkDraft:
        recipients = (
            BulkRecipientDraft(item["to"], item.get("templateData") or {}, item.get("metadata"), item.get("locale"))
            for item in attrs["recipients"]
        )
        return BulkDraft(
            template=attrs["templateId"],
            recipients=tuple(recipients),
            subject=attrs.get("subject"),
            **self.shared(attrs),
        )


def _envelope(attrs: Mapping[str, Any]) -> frozenset[str] | None:
    """Return the addr-specs that receive the email, None for all. Raises ValidationError for another address."""
    envelope = [address.spec for address in attrs.get("envelope") or ()]
    addressed = {address.spec.lower() for name in ("to", "cc", "bcc") for address in attrs.get(name) or ()}
    if others := [spec for spec in envelope if spec.lower() not in addressed]:
        raise serializers.ValidationError({"envelope": [_not_addressed(others[0])]})
    return frozenset(spec.lower() for spec in envelope) or None


def _not_addressed(spec: str) -> serializers.ErrorDetail:
    return serializers.ErrorDetail(f"{spec} is in none of to, cc and bcc.", code="not_addressed")


def _required(message: str) -> serializers.ErrorDetail:
    return serializers.ErrorDetail(message, code="required")


def _refuse_too_many(data: Any, name: str, *, limit: int) -> None:
    """Raise TooManyRecipients before a million addresses are parsed."""
    entries = data.get(name) if isinstance(data, dict) else None
    if isinstance(entries, list) and len(entries) > limit:
        detail = f"{name} has {len(entries):,} entries. At most {limit} are allowed."
        raise TooManyRecipients(detail, field=name, limit=limit)
