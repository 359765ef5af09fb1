"""Requests of Resend's API: an email, a time and the page of a list."""

import base64
import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import unquote, urlsplit

from rest_framework.request import Request

from core.delivery.message.footer import UNSUBSCRIBE_PLACEHOLDER
from core.delivery.message.unsubscribe_places import TAG_END, TAG_START
from core.lib.ids import from_any_spelling
from emails.accept.drafts import Draft
from emails.accept.rules.attachments import MAX_FILES, MAX_TOTAL_BYTES, too_large
from interfaces.compat.drafts import (
    NativeBody,
    as_object,
    as_objects,
    build_draft,
    custom_headers,
    unfolded_base64,
    valid_field,
)
from interfaces.compat.errors import invalid_field

MAX_LIMIT = 100
DEFAULT_LIMIT = 20
MAX_BATCH = 100
MAX_TAGS = 75
# The place of the unsubscribe link, as it is or encoded by an editor.
# https://resend.com/docs/dashboard/broadcasts/introduction
UNSUBSCRIBE_TAG = re.compile(f"{TAG_START}RESEND_UNSUBSCRIBE_URL{TAG_END}")
NUMBER = re.compile("[0-9]{1,6}")
# "in 1 min": the form of natural language in Resend's examples. Other forms are refused.
DELAY = re.compile(r"in (?P<count>[0-9]{1,6}) ?(?P<unit>sec|second|min|minute|h|hour|day)s?", re.ASCII)
# https://resend.com/docs/dashboard/emails/schedule-email
UNITS = {"sec": "seconds", "second": "seconds", "min": "minutes", "minute": "minutes", "h": "hours", "hour": "hours",
         "day": "days"}  # fmt: skip


def read_email(value: Any) -> Draft:
    """Return the draft of an email, with the files that it names by URL. Raises InvalidFields and ValidationError."""
    body = as_object(value, "body")
    files = as_objects(body.get("attachments"), "attachments", at_most=MAX_FILES)
    native: NativeBody = {
        **{name: body.get(name) for name in ("from", "to", "subject")},
        **{name: with_unsubscribe_links(body.get(name)) for name in ("html", "text")},
        "cc": _addresses(body.get("cc")),
        "bcc": _addresses(body.get("bcc")),
        "replyTo": body.get("reply_to"),
        "tags": [_tag(tag) for tag in as_objects(_named(body.get("tags")), "tags", at_most=MAX_TAGS)],
        "headers": custom_headers(as_object(body.get("headers"), "headers").items()),
        "attachments": [_file(file) for file in files],
        "scheduledFor": _scheduled(body.get("scheduled_at")),
        **_template(as_object(body.get("template"), "template")),
    }
    if not native["subject"] and "templateId" not in native:
        raise invalid_field("subject", "Missing `subject` field.", code="required")
    return _with_remote_files(build_draft(native), urls=[file.get("path") for file in files])


def with_unsubscribe_links(text: Any) -> Any:
    """Return a text with the places of the unsubscribe link in the form of Postrider; any other value unchanged."""
    return UNSUBSCRIBE_TAG.sub(UNSUBSCRIBE_PLACEHOLDER, text) if isinstance(text, str) else text


def _with_remote_files(draft: Draft, *, urls: Sequence[Any]) -> Draft:
    """Return a valid draft with the content of the files that have a URL. Raises InvalidFields, AttachmentsTooLarge."""
    remote = [index for index, url in enumerate(urls) if url]
    if not remote:
        return draft
    # aiohttp, which few web processes use, is 6 MB of memory (docs/decisions/0259).
    from interfaces.compat.resend.remote_files import fetch_files  # noqa: PLC0415

    contents = dict(zip(remote, fetch_files([urls[index] for index in remote]), strict=True))
    files = tuple(replace(file, data=contents.get(index, file.data)) for index, file in enumerate(draft.files))
    if sum(len(file.data) for file in files) > MAX_TOTAL_BYTES:
        raise too_large()
    return replace(draft, files=files)


def read_batch_item(value: Any) -> Draft:
    """Return the draft of an email in a batch, which has no attachments."""
    if as_object(value, "body").get("attachments"):
        raise invalid_field("attachments", "Attachments are not supported in a batch.")
    return read_email(value)


def read_schedule(body: dict[str, Any]) -> datetime:
    """Return the new time of an email.

    Raises InvalidFields, also for a missing time, which would send the email now, and ValidationError.
    """
    if body.get("scheduled_at") is None:
        raise invalid_field("scheduledFor", "Missing `scheduled_at` field.", code="required")
    scheduled_for: datetime = valid_field("scheduledFor", _scheduled(body["scheduled_at"]))
    return scheduled_for


def read_limit(request: Request) -> int:
    """Return the size of a page. Raises InvalidFields."""
    text = request.query_params.get("limit", str(DEFAULT_LIMIT))
    if not NUMBER.fullmatch(text) or not 1 <= int(text) <= MAX_LIMIT:
        raise invalid_field("limit", f"The `limit` must be a number between 1 and {MAX_LIMIT}.")
    return int(text)


def _addresses(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _named(tags: Any) -> Any:
    """Return tags as a list. The examples of Resend's library for Ruby have an object instead."""
    return [{"name": name, "value": value} for name, value in tags.items()] if isinstance(tags, dict) else tags


def _tag(tag: dict[str, Any]) -> Any:
    name, value = tag.get("name"), tag.get("value")
    if not isinstance(name, str) or not name or not isinstance(value, str):
        raise invalid_field("tags", "A tag must have a `name` and a `value`.")
    return f"{name}:{value}"


def _file(file: dict[str, Any]) -> dict[str, Any]:
    """Return an attachment; one with a URL has no content yet."""
    path = file.get("path")
    if path and (not isinstance(path, str) or file.get("content")):
        raise invalid_field("attachments", "Provide the `content`, or the `path` as a URL.")
    return {
        "filename": file.get("filename") or _file_name(path or "") or "attachment",
        "content": "" if path else _base64(file.get("content")),
        "contentType": file.get("content_type"),
        "contentId": file.get("content_id"),
    }


def _file_name(url: str) -> str:
    """Return the last part of a URL's path; an empty string without one."""
    try:
        return unquote(urlsplit(url).path).rpartition("/")[2]
    except ValueError:
        return ""


def _base64(content: Any) -> Any:
    """Return bytes given as a list of numbers, or as a Buffer of Node, in base64, and base64 without line breaks."""
    numbers = content.get("data") if isinstance(content, dict) else content
    if not isinstance(numbers, list):
        return unfolded_base64(content)
    try:
        return base64.b64encode(bytes(numbers)).decode()
    except (TypeError, ValueError) as error:
        raise invalid_field("attachments", "The `content` must be base64, or a list of bytes.") from error


def _scheduled(value: Any) -> Any:
    delay = DELAY.fullmatch(value.strip().lower()) if isinstance(value, str) else None
    if delay is None:
        return value
    wait = timedelta(**{UNITS[delay["unit"]]: int(delay["count"])})
    return (datetime.now(UTC) + wait).isoformat()


def _template(template: dict[str, Any]) -> dict[str, Any]:
    if not template.get("id"):
        return {}
    reference = template["id"]
    template_id = from_any_spelling(reference, prefix="tpl_") if isinstance(reference, str) else reference
    return {"templateId": template_id, "templateData": as_object(template.get("variables"), "template.variables")}
