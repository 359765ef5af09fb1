"""Drafts from submitted messages: the same Draft that a request to `POST /v1/emails/send` becomes."""

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from rest_framework.exceptions import ValidationError

from core.lib.email_addresses import (
    FORBIDDEN,
    Address,
    InvalidAddress,
    parse_address,
    parse_recipient,
    split_address_list,
    split_name,
)
from core.lib.mail.address_lists import read_address_list
from core.lib.mail.encoded_words import decode_words
from core.lib.mail.mime import MimePart, read_message
from core.lib.mail.mime_policy import MalformedMime, MimePolicy
from emails.accept.drafts import Draft
from emails.accept.rules.fields import (
    MAX_HEADER_LENGTH,
    MAX_SUBJECT_LENGTH,
    RESERVED_HEADERS,
    RESERVED_PREFIXES,
    HeadersField,
)
from emails.models import Entrance
from interfaces.submission.content import read_content
from interfaces.submission.errors import InvalidHeader, MalformedMessage
from interfaces.submission.options import IDEMPOTENCY_KEY, Options, error_messages

# The client's Message-ID; Postrider's is the same on every attempt and identifies the recipient.
ORIGINAL_ID = "X-Original-Message-ID"
# Only recipients may have internationalized addresses (docs/decisions/0083).
ADDRESS_FIELDS = {"from": parse_address, "to": parse_recipient, "cc": parse_recipient, "reply-to": parse_address}
# Header fields that describe the transfer so far, or that Postrider sets itself: dropped (docs/smtp.md).
DROPPED = (RESERVED_HEADERS | {"x-received"}) - set(ADDRESS_FIELDS) - {"subject", "message-id"}
DROPPED_PREFIXES = ("content-", "list-", "dkim-", "arc-", "resent-")
# Those of RFC 5322, section 3.6, that occur once; the number of others is unlimited, and the first one is kept.
SINGLE = frozenset({"in-reply-to", "references"})
# Header fields with options of other services.
REFUSED_PREFIXES = tuple(prefix for prefix in RESERVED_PREFIXES if prefix not in (*DROPPED_PREFIXES, "x-pm-"))
MAX_VISIBLE = 500
# The program gets the reply while its user waits: it is better to refuse a message than to alter it.
STRICT = MimePolicy(is_strict=True)
# Mail servers write it for a message without To, often with a comment, some in angle brackets.
EMPTY_GROUP = re.compile(r":\s*;")


@dataclass
class Headers:
    """The header of a message, sorted by its use."""

    addresses: dict[str, tuple[Address, ...]] = field(default_factory=dict)
    subject: str | None = None
    options: Options = field(default_factory=Options)
    custom: dict[str, str] = field(default_factory=dict)
    original_id: str = ""

    def add(self, name: str, value: str) -> None:
        """Sort one field. Raises InvalidHeader."""
        lower = name.lower()
        text = decode_words(value)
        if lower in ADDRESS_FIELDS:
            # RFC 5322 allows one field of each; some programs repeat To for each recipient.
            self._add_addresses(name, value)
        elif lower == "subject":
            self._set_subject(text)
        elif lower == "message-id":
            self.original_id = value
        elif self.options.add(name, text) or lower in DROPPED or lower.startswith(DROPPED_PREFIXES):
            return
        elif lower.startswith(REFUSED_PREFIXES):
            raise InvalidHeader(name, "Options of other services are not supported; remove this header.")
        else:
            self._add_custom(name, text)

    def _add_addresses(self, name: str, value: str) -> None:
        try:
            found = _addresses(name, value)
        except InvalidAddress as error:
            raise InvalidHeader(name, str(error)) from error
        self.addresses[name.lower()] = (*self.addresses.get(name.lower(), ()), *found)

    def _add_custom(self, name: str, text: str) -> None:
        known = next((known for known in self.custom if known.lower() == name.lower()), None)
        if known is None:
            self.custom[name] = text
        elif known.lower() in SINGLE and self.custom[known] != text:
            raise InvalidHeader(name, "This header is given more than once.")

    def sender(self) -> Address:
        senders = self.addresses.get("from", ())
        if len(senders) != 1:
            raise InvalidHeader("From", f"A message must have exactly one From address, not {len(senders)}.")
        return senders[0]

    def _set_subject(self, text: str) -> None:
        # RFC 5322, section 3.6.
        if self.subject is not None:
            raise MalformedMessage("A message must have only one Subject")
        self.subject = text

    def checked_subject(self) -> str:
        subject = self.subject or ""
        if FORBIDDEN.search(subject):
            raise InvalidHeader("Subject", "This must not contain line breaks or other control characters.")
        if len(subject) > MAX_SUBJECT_LENGTH:
            raise InvalidHeader("Subject", f"This must have at most {MAX_SUBJECT_LENGTH} characters.")
        return subject

    def checked_custom(self) -> dict[str, str]:
        """Return the custom headers, checked by the rules of the API."""
        try:
            custom: dict[str, str] = HeadersField().run_validation(self.custom)
        except ValidationError as error:
            details = error.detail
            name, messages = next(iter(details.items())) if isinstance(details, dict) else ("Headers", details)
            raise InvalidHeader(str(name), next(error_messages(messages))) from error
        return custom


@dataclass(frozen=True)
class SubmittedEmail:
    """A draft, the idempotency key of its header if any, and a digest of everything that a repeat must have equal.

    headers: the names of the headers with options, by the fields that they set.
    """

    draft: Draft
    key: str | None
    fingerprint: str
    headers: Mapping[str, str]

    @property
    def is_plain(self) -> bool:
        """Whether one statement accepts the email together with others, and none of them waits for its content."""
        draft = self.draft
        return not (self.key or draft.files or draft.template or draft.scheduled_for)

    def with_key(self, key_id: str) -> "SubmittedEmail":
        """Return the email as one of an API key, for acceptance with emails of others that have the same limits."""
        return replace(self, draft=replace(self.draft, api_key_id=key_id))


def read_email(
    source: bytes | bytearray, *, recipients: Collection[Address], deliver_within: int | None = None
) -> SubmittedEmail:
    """Return the email that a message with this envelope asks for. Raises Refused.

    To and Cc show the addresses of the header; only those of the envelope receive the message, the others among them
    as blind copies.
    deliver_within: the seconds of the envelope (RFC 2852); the shorter one of those and of the header counts.
    """
    try:
        return _read(read_message(source, STRICT), recipients, deliver_within)
    except MalformedMime as error:
        raise MalformedMessage(str(error)) from error
    except RecursionError as error:
        raise MalformedMessage("The message is nested too deeply") from error


def _read(message: MimePart, recipients: Collection[Address], deliver_within: int | None) -> SubmittedEmail:
    headers = _read_headers(message)
    options = headers.options.validated()
    content = read_content(message)
    to, cc = headers.addresses.get("to", ()), headers.addresses.get("cc", ())
    visible = {address.spec.lower() for address in (*to, *cc)}
    template = options.get("templateId")
    draft = Draft(
        sender=headers.sender(),
        to=to,
        cc=cc,
        bcc=tuple(address for address in recipients if address.spec.lower() not in visible),
        reply_to=headers.addresses.get("reply-to", ()),
        subject=headers.checked_subject() or (None if template else ""),
        html=content.html,
        text=content.text,
        files=content.files,
        headers=headers.checked_custom(),
        template=template,
        template_data=options.get("templateData"),
        tags=tuple(options.get("tags", ())),
        metadata=options.get("metadata"),
        scheduled_for=options.get("scheduledFor"),
        track_opens=options.get("trackOpens"),
        track_clicks=options.get("trackClicks"),
        stream=options.get("stream"),
        locale=options.get("locale"),
        sensitive=options.get("sensitive", False),
        tls=options.get("tls"),
        deliver_within=min(filter(None, (deliver_within, options.get("deliverWithin"))), default=None),
        entrance=Entrance.SMTP,
        envelope=frozenset(address.spec.lower() for address in recipients),
    )
    fingerprint = _fingerprint(draft)
    key = headers.options.values.get(IDEMPOTENCY_KEY)
    return SubmittedEmail(_with_original_id(draft, headers.original_id), key, fingerprint, headers.options.headers)


def _read_headers(message: MimePart) -> Headers:
    headers = Headers()
    for header in message.fields:
        headers.add(header.name, header.value)
    return headers


def _addresses(name: str, value: str) -> list[Address]:
    """Return the addresses of a header field. Raises InvalidAddress and InvalidHeader.

    Each is read as the API reads it (docs/decisions/0293). RFC 5322 also has groups, which may be empty as in
    `undisclosed-recipients:;`, comments behind an address, and obsolete forms.
    """
    texts, parse = split_address_list(value), ADDRESS_FIELDS[name.lower()]
    if len(texts) > MAX_VISIBLE:
        raise InvalidHeader(name, f"At most {MAX_VISIBLE} addresses are allowed.")
    if not texts and value.strip():
        raise InvalidHeader(name, f"{value[:80]!r} is not a list of addresses.")
    # The API would read the name of a group as part of that of its first member.
    if ";" in value.partition(":")[2] and (groups := _exact_addresses(value)) is not None:
        return [parse(str(address)) for address in groups]
    try:
        return [parse(_decoded(text)) for text in texts]
    except InvalidAddress:
        if EMPTY_GROUP.search(value) and "@" not in value:
            return []
        if (exact := _exact_addresses(value)) is None:
            raise
        with suppress(InvalidAddress):
            return [parse(str(address)) for address in exact]
        raise


def _exact_addresses(value: str) -> list[Address] | None:
    """Return the unchecked addresses of a field that follows RFC 5322, None for another field.

    None for one with control characters, too, which the reader of received fields drops.
    """
    found = read_address_list(value)
    if FORBIDDEN.search(decode_words(value)):
        return None
    return [Address(mailbox.name, mailbox.email) for mailbox in found.mailboxes] if found.is_exact else None


def _decoded(text: str) -> str:
    """Return an address with its name decoded, after it was split from the address. Raises InvalidAddress."""
    if "=?" not in text and "\x1b" not in text:
        return text
    name, spec = split_name(text)
    return str(Address(decode_words(name).strip(), spec))


def _with_original_id(draft: Draft, original_id: str) -> Draft:
    """Return the draft with the client's Message-ID among its headers, if it can be one."""
    is_taken = any(name.lower() == ORIGINAL_ID.lower() for name in draft.headers)
    is_text = original_id.isascii() and original_id.isprintable()
    if not original_id or is_taken or not is_text or len(original_id) > MAX_HEADER_LENGTH:
        return draft
    return replace(draft, headers={**draft.headers, ORIGINAL_ID: original_id})


def _fingerprint(draft: Draft) -> str:
    """Return a digest of a draft: a program that repeats a message gives it another Message-ID, date and boundary."""
    values: dict[str, Any] = {**vars(draft), "envelope": sorted(draft.envelope or ())}
    # As the versions without streams, languages, sensitive emails, expiries and required TLS hashed it.
    values |= {name: True for name in ("track_opens", "track_clicks") if values[name] is None}
    for name in ("stream", "locale", "sensitive", "deliver_within", "expires_at", "tls"):
        if not values[name]:
            del values[name]
    values["files"] = [
        (file.filename, file.content_type, file.content_id, file.placement, hashlib.sha256(file.data).hexdigest())
        for file in draft.files
    ]
    return hashlib.sha256(json.dumps(values, sort_keys=True, default=str).encode()).hexdigest()
