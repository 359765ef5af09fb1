"""Requests of Postmark's API: emails with and without templates, and the page of a list. null means absent."""

from collections.abc import Mapping
from typing import Any

from rest_framework.request import Request

from core.lib.email_addresses import InvalidAddress, parse_recipient, split_address_list
from emails.accept.drafts import Draft
from emails.accept.rules.attachments import MAX_FILES
from emails.accept.rules.fields import MAX_RECIPIENTS
from emails.errors import TooManyRecipients
from interfaces.compat.drafts import (
    MAX_GIVEN_HEADERS,
    NativeBody,
    as_object,
    as_objects,
    build_draft,
    custom_headers,
    read_choice,
    unfolded_base64,
)
from interfaces.compat.errors import invalid_field
from interfaces.compat.postmark.names import canonical_names, read_id
from interfaces.compat.postmark.templates.requests import SECTIONS, with_links
from interfaces.compat.views import MAX_COUNTED, AnyJSONParser

MAX_BATCH = 500
MAX_COUNT = 500
ADDRESS_LIST_LENGTH = 100_000
# https://postmarkapp.com/developer/api/email-api
TRACKED_LINKS = {"HtmlAndText": True, "HtmlOnly": True, "None": False, "TextOnly": False}


class PostmarkJSONParser(AnyJSONParser):
    """The parser of the dialect: members have the names of Postmark's documentation."""

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        return canonical_names(super().parse(stream, media_type, parser_context))


def read_email(value: Any) -> Draft:
    """Return the draft of an email. Raises InvalidFields and ValidationError."""
    body = as_object(value, "Body")
    content = {native: with_links(body.get(name), name) for name, native in SECTIONS.items()}
    return build_draft(_fields(body) | content | {"subject": content["subject"] or ""})


def read_email_with_template(value: Any, *, template_ids: Mapping[str, str]) -> Draft:
    """Return the draft of an email with a template. template_ids: by the number in TemplateId."""
    body = as_object(value, "Body")
    reference = str(body.get("TemplateAlias") or body.get("TemplateId") or "")
    if not reference:
        raise invalid_field("TemplateId", "Provide TemplateId or TemplateAlias.", code="required")
    model = as_object(body.get("TemplateModel"), "TemplateModel")
    return build_draft(
        _fields(body) | {"subject": None, "templateId": template_ids.get(reference, reference), "templateData": model}
    )


def read_slice(request: Request) -> slice:
    """Return the rows that `count` and `offset` ask for. Raises InvalidFields."""
    count, offset = (_number(request, name) for name in ("count", "offset"))
    if not 1 <= count <= MAX_COUNT:
        raise invalid_field("count", f"The count must be between 1 and {MAX_COUNT}.")
    if count + offset > MAX_COUNTED:
        raise invalid_field("offset", f"Count and offset together must not exceed {MAX_COUNTED:,}.")
    return slice(offset, offset + count)


def _fields(body: dict[str, Any]) -> NativeBody:
    to, cc, bcc = (_addresses(body, name) for name in ("To", "Cc", "Bcc"))
    if len(to) + len(cc) + len(bcc) > MAX_RECIPIENTS:
        raise _too_many_recipients("to")
    tag, opens = body.get("Tag"), body.get("TrackOpens")
    return {
        "from": _sender(body.get("From")),
        "to": to,
        "cc": cc,
        "bcc": bcc,
        "replyTo": _addresses(body, "ReplyTo"),
        "tags": [tag] if tag else [],
        "metadata": as_object(body.get("Metadata"), "Metadata") or None,
        "stream": read_id(body["MessageStream"]) if body.get("MessageStream") else None,
        "headers": custom_headers(
            [_header(header) for header in as_objects(body.get("Headers"), "Headers", at_most=MAX_GIVEN_HEADERS)]
        ),
        "attachments": [_file(file) for file in as_objects(body.get("Attachments"), "Attachments", at_most=MAX_FILES)],
        "trackOpens": opens,
        "trackClicks": read_choice(body.get("TrackLinks") or None, TRACKED_LINKS, field="TrackLinks"),
    }


def _sender(text: Any) -> Any:
    if isinstance(text, str) and text:
        _refuse_invalid(text, field="from")
    return text


def _addresses(body: dict[str, Any], name: str) -> list[str]:
    """Return the addresses of a list separated by commas."""
    text = body.get(name) or ""
    if not isinstance(text, str) or len(text) > ADDRESS_LIST_LENGTH:
        raise invalid_field(name, "This must be addresses separated by commas.")
    addresses = split_address_list(text)
    if len(addresses) > MAX_RECIPIENTS:
        raise _too_many_recipients(name.lower())
    for address in addresses:
        _refuse_invalid(address, field="replyTo" if name == "ReplyTo" else name.lower())
    return addresses


def _too_many_recipients(field: str) -> TooManyRecipients:
    return TooManyRecipients(f"At most {MAX_RECIPIENTS} recipients are allowed.", field=field, limit=MAX_RECIPIENTS)


def _refuse_invalid(address: str, *, field: str) -> None:
    try:
        parse_recipient(address)
    except InvalidAddress as error:
        # Clients read the address between the first and the last apostrophe.
        raise invalid_field(field, f"Illegal email address '{address[:200]}'.", code="invalid_email") from error


def _header(header: dict[str, Any]) -> tuple[str, Any]:
    name = header.get("Name")
    if not isinstance(name, str):
        raise invalid_field("Headers", "A header must have a Name.")
    return name, header.get("Value")


def _file(file: dict[str, Any]) -> dict[str, Any]:
    return {
        "filename": file.get("Name"),
        "content": unfolded_base64(file.get("Content")),
        "contentType": file.get("ContentType"),
        "contentId": file.get("ContentID") or None,
    }


def _number(request: Request, name: str) -> int:
    text = request.query_params.get(name, "100" if name == "count" else "0")
    if not text.isascii() or not text.isdigit() or len(text) > 6:
        raise invalid_field(name, "This must be a number.")
    return int(text)
