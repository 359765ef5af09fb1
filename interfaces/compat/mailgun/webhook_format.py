"""Received emails in the format of Mailgun's routes: a form, as of forward() with files and of store() with URLs.

https://documentation.mailgun.com/docs/mailgun/user-manual/receive-forward-store/receive-http
"""

import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any

from events.kinds import EventBody
from interfaces.compat.multipart import content_type, form_body
from receiving.inlining import (
    InlinedEmail,
    header_fields,
    load_inlined,
    mailbox_list,
    mailbox_text,
    measure_email,
    with_fields,
)
from webhooks.formats import LargeBody, RequestBody, WebhookFormat

RECEIVED = "received"
TOKEN_LENGTH = 50
SPAM_FIELDS = ("x-mailgun-sflag", "x-mailgun-sscore", "x-mailgun-")
# Header fields that are fields of the form, too.
COPIED = ("Date", "Message-Id", "In-Reply-To", "References")


def form_fields(email: InlinedEmail) -> dict[str, str | bytes]:
    """Return the fields of a form beside the signature and the files."""
    resource = email.resource
    sender = mailbox_text(resource["from"]) if resource["from"] else ""
    spam = _spam_fields(resource)
    copied = {name: text for name in COPIED if (text := email.header_text(name))}
    named = {"To": mailbox_list(resource["to"]), "Cc": mailbox_list(resource["cc"])}
    fields: dict[str, str | bytes] = {
        "recipient": resource["recipient"],
        "sender": resource["envelopeFrom"],
        "from": sender,
        "subject": resource["subject"],
        "From": sender,
        **{name: text for name, text in named.items() if text},
        "Subject": resource["subject"],
        **copied,
        **dict(spam),
        "message-headers": _json([*spam, *header_fields(email.resource, without=SPAM_FIELDS)]),
    }
    if email.source is not None:
        return {**fields, "body-mime": with_fields(email.source, spam, without=SPAM_FIELDS)}
    text = resource["text"]
    fields |= {"body-plain": text, "stripped-text": text if resource["replyText"] is None else resource["replyText"]}
    if resource["html"]:
        fields["body-html"] = resource["html"]
    return fields | _file_fields(email)


def _spam_fields(resource: Mapping[str, Any]) -> list[tuple[str, str]]:
    spam = resource["spam"]
    if not spam:
        return []
    return [("X-Mailgun-Sflag", "Yes" if spam["isSpam"] else "No"), ("X-Mailgun-Sscore", str(spam["score"]))]


def _file_fields(email: InlinedEmail) -> dict[str, str]:
    ids = {
        f"<{file.entry['contentId']}>": f"attachment-{number}"
        for number, file in enumerate(email.files, 1)
        if file.entry["contentId"]
    }
    fields = {"content-id-map": _json(ids)} if ids else {}
    if email.has_links:
        links = [
            {
                "url": file.entry["url"],
                "content-type": content_type(file),
                "name": file.filename,
                "size": file.entry["size"],
            }
            for file in email.files
        ]
        urls = {f"<{link['contentId']}>": link["url"] for link in email.resource["attachments"] if link["contentId"]}
        fields = {"attachments": _json(links), "content-id-map": _json(urls)} if links else {}
        return {**fields, "message-url": email.resource["raw"]["url"]}
    return {"attachment-count": str(len(email.files)), **fields}


def signature_fields(event_id: str, *, secret: str, timestamp: int) -> dict[str, str]:
    """Return the signature: HMAC-SHA256 over timestamp and token, by which receivers refuse old requests.

    The token is that of the event; only the timestamp and the signature differ between attempts.
    """
    token = hashlib.sha256(f"mailgun token {event_id}".encode()).hexdigest()[:TOKEN_LENGTH]
    signature = hmac.new(secret.encode(), f"{timestamp}{token}".encode(), hashlib.sha256).hexdigest()
    return {"timestamp": str(timestamp), "token": token, "signature": signature}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _render(event: EventBody, secret: str, timestamp: int) -> RequestBody | None:
    email = load_inlined(event["data"])
    if email is None:
        return None
    files = [] if email.has_links else [(f"attachment-{number}", file) for number, file in enumerate(email.files, 1)]
    signature = signature_fields(event["id"], secret=secret, timestamp=timestamp)
    return form_body(form_fields(email) | signature, files=files, seed=event["id"])


FORMAT = WebhookFormat(
    "mailgun",
    "Mailgun",
    (RECEIVED,),
    # The event is always rendered for an attempt.
    payload=lambda event: event,
    large={RECEIVED: LargeBody(measure_email, _render)},
    refuses_others=True,
)
