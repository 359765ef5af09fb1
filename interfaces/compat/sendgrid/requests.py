"""Requests of SendGrid's API: each personalization is an email."""

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from rest_framework.request import Request

from core.api.errors import PayloadTooLarge, Problem
from core.delivery.message.compose import File, Placement
from core.delivery.message.footer import MAX_UNSUBSCRIBE_LINKS, UNSUBSCRIBE_PLACEHOLDER
from core.lib.email_addresses import quote_name
from core.lib.ids import from_any_spelling
from emails.accept.drafts import Draft
from emails.accept.rules.attachments import CONTENT_TYPE, MAX_FILES, with_method
from emails.accept.rules.fields import MAX_RECIPIENTS
from interfaces.compat.attachments import spellings
from interfaces.compat.drafts import (
    NativeBody,
    as_list,
    as_object,
    as_objects,
    build_draft,
    custom_headers,
    read_drafts,
    unfolded_base64,
    valid_field,
)
from interfaces.compat.errors import invalid_field
from interfaces.compat.sendgrid.message_settings import refuse_settings
from interfaces.compat.sendgrid.template_language import with_unsubscribe_links
from interfaces.compat.views import MAX_COUNTED

MAX_PERSONALIZATIONS = 1000
# In all personalizations together, as at SendGrid.
MAX_TOTAL_RECIPIENTS = 1000
MAX_CATEGORIES = 10
MAX_CONTENTS = 10
TEMPLATE_PREFIX = "d-"
HEX_ID = re.compile("[0-9a-f]{32}")
# https://www.twilio.com/docs/sendgrid/api-reference/mail-send/mail-send
CONTENT_FIELDS = {"text/plain": "text", "text/html": "html"}
# Other forms of the content, such as an invitation or AMP, and the name of a file of that type.
ALTERNATIVE = "text/"
FILE_NAMES = {"text/calendar": "invite.ics", "text/x-amp-html": "amp.html"}
SUBJECT_REQUIRED = (
    "The subject is required. You can get around this requirement if you use a template with a subject defined or if "
    "every personalization has a subject defined."
)
# Characters that all substitutions of a request may read, and write into content: up to 1 s and 20 MiB.
MAX_SCANNED = 200_000_000
# In texts shorter than this, str.count and str.replace may compare the whole key at each position.
LINEAR_SEARCH = 30_000
KEY_UNIT = 16
MAX_SUBSTITUTED = 20 * 1024 * 1024
MAX_SUBSTITUTIONS = 10_000
MAX_SHOWN_KEY = 100
MAX_LISTED = 500
# Digits of a Unix timestamp in seconds.
MAX_DIGITS = 11
# A content for the validation of a personalization, which has none.
PLACEHOLDER = "-"


def read_emails(body: dict[str, Any], *, stream: str | None = None) -> list[Draft | Problem]:
    """Return the draft of each personalization, or its problem. Raises InvalidFields and ValidationError."""
    refuse_settings(body)
    personalizations = as_objects(body.get("personalizations"), "personalizations", at_most=MAX_PERSONALIZATIONS)
    if not personalizations:
        raise invalid_field("personalizations", "The personalizations field is required.", code="required")
    shared = _shared(body)
    content = _content(body, shared, to=personalizations[0].get("to"))
    budget = _SubstitutionBudget()

    batch_id = read_batch_id(body["batch_id"]) if body.get("batch_id") else None

    def read(personalization: dict[str, Any]) -> Draft:
        draft = build_draft(_personalized(body, shared, personalization))
        return replace(_with_content(draft, content, personalization, budget), batch_id=batch_id, stream=stream)

    drafts = read_drafts(read, personalizations)
    if sum(len(draft.to + draft.cc + draft.bcc) for draft in drafts if isinstance(draft, Draft)) > MAX_TOTAL_RECIPIENTS:
        raise invalid_field("personalizations", f"At most {MAX_TOTAL_RECIPIENTS:,} recipients are allowed in total.")
    return drafts


def read_batch_id(value: Any) -> str:
    """Return the id of a batch in the spelling of `/v1`. Raises InvalidFields."""
    if not isinstance(value, str):
        raise invalid_field("batchId", "This must be a string.", code="invalid_type")
    return from_any_spelling(value, prefix="bat_")


def is_sandboxed(body: dict[str, Any]) -> bool:
    sandbox = as_object(as_object(body.get("mail_settings"), "mail_settings").get("sandbox_mode"), "sandbox_mode")
    return sandbox.get("enable") is True


def template_reference(value: Any) -> str | None:
    """Return the template id or alias behind the prefix `d-` that SendGrid's library requires."""
    if not isinstance(value, str) or not value:
        return None
    reference = value.removeprefix(TEMPLATE_PREFIX)
    dashed = str(UUID(reference)) if HEX_ID.fullmatch(reference) else reference
    return from_any_spelling(dashed, prefix="tpl_")


class _SubstitutionBudget:
    """The characters that the substitutions of a request may still read and write."""

    def __init__(self) -> None:
        self.scanned, self.written = MAX_SCANNED, MAX_SUBSTITUTED

    def substitute(self, text: str, substitutions: Mapping[str, str]) -> str:
        """Replace each key by its value. Raises PayloadTooLarge."""
        for key, value in substitutions.items():
            self.scanned -= len(text) * (1 if len(text) >= LINEAR_SEARCH else 1 + len(key) // KEY_UNIT)
            if self.scanned < 0 or len(text) + text.count(key) * len(value) > self.written:
                raise PayloadTooLarge("The substitutions of this request are too large. Use a template.")
            text = text.replace(key, value)
        self.written -= len(text)
        return text


def _shared(body: dict[str, Any]) -> NativeBody:
    """Return the fields that all personalizations share, without the content."""
    reply_to = body.get("reply_to_list") or ([body["reply_to"]] if body.get("reply_to") else [])
    settings = as_object(body.get("tracking_settings"), "tracking_settings")
    return {
        "from": _address(body.get("from"), "from"),
        "replyTo": [
            _address(address, "reply_to") for address in as_list(reply_to, "reply_to_list", at_most=MAX_RECIPIENTS)
        ],
        "tags": as_list(body.get("categories"), "categories", at_most=MAX_CATEGORIES),
        "trackOpens": as_object(settings.get("open_tracking"), "open_tracking").get("enable"),
        "trackClicks": as_object(settings.get("click_tracking"), "click_tracking").get("enable"),
        "templateId": template_reference(body.get("template_id")),
    }


def _content(body: dict[str, Any], shared: NativeBody, *, to: Any) -> Draft:
    """Return a draft with the content and attachments, validated once for all personalizations."""
    parts = _parts(body)
    files = as_objects(body.get("attachments"), "attachments", at_most=MAX_FILES)
    draft = build_draft(
        {
            "from": shared["from"],
            "to": _addresses({"to": to}, "to"),
            "subject": "",
            "templateId": shared["templateId"],
            "attachments": [_file(file) for file in files],
            **{CONTENT_FIELDS[kind]: value for kind, (_, value) in parts.items() if kind in CONTENT_FIELDS},
        }
    )
    others = [_alternative(*part) for kind, part in parts.items() if kind not in CONTENT_FIELDS]
    return replace(draft, files=(*draft.files, *others))


def _parts(body: dict[str, Any]) -> dict[str, tuple[str, Any]]:
    """Return type and text of each part of the content by its media type. Raises InvalidFields."""
    found: dict[str, tuple[str, Any]] = {}
    for part in as_objects(body.get("content"), "content", at_most=MAX_CONTENTS):
        content_type = str(part.get("type")).strip()
        kind = content_type.partition(";")[0].strip().lower()
        if kind in found:
            raise invalid_field("content", f"The content has two parts of the type {kind[:100]}.")
        found[kind] = content_type, _with_tags(body, part.get("value"))
    return found


def _with_tags(body: dict[str, Any], text: Any) -> Any:
    """Return a text with the places of the unsubscribe link: SendGrid's own, and the tag that the request names.

    The tag of the pixel is removed: the pixel is always at the end.
    """
    if not isinstance(text, str):
        return text
    if pixel := _substitution_tag(body, "open_tracking"):
        text = text.replace(pixel, "")
    linked, tag = with_unsubscribe_links(text), _substitution_tag(body, "subscription_tracking")
    for spelling in spellings(tag) if tag else ():
        linked = linked.replace(spelling, UNSUBSCRIBE_PLACEHOLDER, MAX_UNSUBSCRIBE_LINKS)
    return linked


def _substitution_tag(body: dict[str, Any], name: str) -> str:
    """Return the tag of an enabled tracking setting, an empty string without one."""
    setting = as_object(as_object(body.get("tracking_settings"), "tracking_settings").get(name), name)
    tag = setting.get("substitution_tag") if setting.get("enable") is True else None
    return tag if isinstance(tag, str) else ""


def _alternative(content_type: str, text: Any) -> File:
    """Return a part that a mail program may show instead of the HTML. Raises InvalidFields and ValidationError."""
    kind = content_type.partition(";")[0].strip().lower()
    if not kind.startswith(ALTERNATIVE) or not CONTENT_TYPE.fullmatch(content_type):
        raise invalid_field(
            "content", f"The type {content_type[:100]} is not supported here. Send it as an attachment."
        )
    name = FILE_NAMES.get(kind, "alternative.txt")
    data = (valid_field("text", text) or "").encode()
    return File(name, with_method(content_type, data), data, placement=Placement.ALTERNATIVE)


def _personalized(body: dict[str, Any], shared: NativeBody, personalization: dict[str, Any]) -> NativeBody:
    headers = {**as_object(body.get("headers"), "headers"), **as_object(personalization.get("headers"), "headers")}
    arguments = (as_object(source.get("custom_args"), "custom_args") for source in (body, personalization))
    template, substitutions = shared["templateId"], _substitutions(personalization)
    data = personalization.get("dynamic_template_data") or substitutions
    own_from = personalization.get("from")
    return {
        **shared,
        **({"from": _address(own_from, "from")} if own_from else {}),
        **{name: _addresses(personalization, name) for name in ("to", "cc", "bcc")},
        "subject": _subject(body, personalization, is_templated=template is not None),
        "html": None if template else PLACEHOLDER,
        "templateData": as_object(data, "dynamic_template_data") if template else None,
        "headers": custom_headers(headers.items()),
        "metadata": {name: value for members in arguments for name, value in members.items()} or None,
        "scheduledFor": _time(personalization.get("send_at") or body.get("send_at")),
    }


def _subject(body: dict[str, Any], personalization: dict[str, Any], *, is_templated: bool) -> Any:
    """Return the subject of an email, None for that of its template. Raises InvalidFields."""
    subject = personalization.get("subject") or body.get("subject") or None
    if subject is None and not is_templated:
        raise invalid_field("subject", SUBJECT_REQUIRED, code="required")
    return subject


def _with_content(draft: Draft, content: Draft, personalization: dict[str, Any], budget: _SubstitutionBudget) -> Draft:
    substitutions = _substitutions(personalization)
    if draft.template or not substitutions:
        return replace(draft, html=content.html, text=content.text, files=content.files)
    html, text, subject = (
        budget.substitute(part, substitutions) for part in (content.html, content.text, draft.subject or "")
    )
    return replace(
        draft,
        html=valid_field("html", html),
        text=valid_field("text", text),
        # Substituted text could contain a line break, which a header must not have.
        subject=valid_field("subject", " ".join(subject.split())),
        files=content.files,
    )


def _substitutions(personalization: dict[str, Any]) -> dict[str, str]:
    substitutions = as_object(personalization.get("substitutions"), "substitutions")
    if len(substitutions) > MAX_SUBSTITUTIONS:
        raise invalid_field("substitutions", f"At most {MAX_SUBSTITUTIONS:,} are allowed.")
    for key, value in substitutions.items():
        if not key:
            raise invalid_field("substitutions", "The name of a substitution must not be empty.", code="blank")
        if value is not None and not isinstance(value, str):
            detail = "The value of a substitution must be a string. Send the text that the email has."
            raise invalid_field(f"substitutions.{key[:MAX_SHOWN_KEY]}", detail, code="invalid_type")
    return {key: value or "" for key, value in substitutions.items()}


def _addresses(source: Mapping[str, Any], name: str) -> list[Any]:
    return [_address(address, name) for address in as_list(source.get(name), name, at_most=MAX_RECIPIENTS)]


def _address(value: Any, field: str) -> Any:
    """Return `{email, name}` as one address; the validation of `/v1` checks it."""
    address = as_object(value, field)
    email, name = address.get("email"), address.get("name")
    return f"{quote_name(name)} <{email}>" if isinstance(name, str) and name else email


def _file(file: dict[str, Any]) -> dict[str, Any]:
    return {
        "filename": file.get("filename"),
        "content": unfolded_base64(file.get("content")),
        "contentType": file.get("type"),
        # The Node library sends its own spelling unchanged.
        "contentId": file.get("content_id") or file.get("contentId") or None,
    }


def _time(value: Any) -> str | None:
    """Return Unix seconds as a timestamp of `/v1`; a time that has passed sends immediately, as at SendGrid."""
    if value is None or value == 0:
        return None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 1 << 33:
        raise invalid_field("scheduledFor", "send_at must be a Unix timestamp in seconds.")
    time = datetime.fromtimestamp(value, UTC)
    return time.isoformat() if time > datetime.now(UTC) else None


def read_slice(request: Request) -> slice:
    """Return the rows that `limit` and `offset` ask for. Raises InvalidFields."""
    limit, offset = _number(request, "limit", MAX_LISTED), _number(request, "offset", 0)
    if not 1 <= limit <= MAX_LISTED or offset > MAX_COUNTED:
        raise invalid_field("limit", f"The limit is 1 to {MAX_LISTED}, the offset at most {MAX_COUNTED:,}.")
    return slice(offset, offset + limit)


def read_times(request: Request) -> dict[str, datetime]:
    """Return the bounds `start_time` and `end_time` by their lookups. Raises InvalidFields."""
    names = {"gte": "start_time", "lte": "end_time"}
    return {
        lookup: datetime.fromtimestamp(_number(request, name, 0), UTC)
        for lookup, name in names.items()
        if request.query_params.get(name)
    }


def _number(request: Request, name: str, default: int) -> int:
    text = request.query_params.get(name) or str(default)
    if not text.isascii() or not text.isdigit() or len(text) > MAX_DIGITS:
        raise invalid_field(name, "This must be a number.")
    return int(text)
