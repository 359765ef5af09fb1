"""Received emails in the format of SendGrid's inbound parse: a form with the message and its files.

https://www.twilio.com/docs/sendgrid/for-developers/parsing-email/setting-up-the-inbound-parse-webhook
"""

import json
from collections.abc import Mapping
from typing import Any

from events.kinds import EventBody
from interfaces.compat.multipart import content_type, form_body
from receiving.inlining import InlinedEmail, load_inlined, mailbox_list, measure_email
from receiving.models import InboundRoute
from webhooks.formats import LargeBody, RequestBody

UTF_8 = "UTF-8"


def form_fields(email: InlinedEmail) -> dict[str, str | bytes]:
    """Return the fields of a form beside the files."""
    resource = email.resource
    texts = {
        "from": mailbox_list([resource["from"]] if resource["from"] else []),
        "to": mailbox_list(resource["to"]),
        "cc": mailbox_list(resource["cc"]),
        "subject": resource["subject"],
        **({} if email.source is not None else {"text": resource["text"], "html": resource["html"]}),
    }
    texts = {name: text for name, text in texts.items() if text or name in {"from", "to", "subject"}}
    fields: dict[str, str | bytes] = {
        **texts,
        "envelope": _json({"to": [resource["recipient"]], "from": resource["envelopeFrom"]}),
        "charsets": _json(dict.fromkeys(texts, UTF_8)),
        "sender_ip": resource["remote"]["ip"] or "",
        **_verdicts(resource),
    }
    if email.source is not None:
        return {**fields, "email": email.source}
    return {"headers": email.header, **fields, **_file_fields(email)}


def _verdicts(resource: Mapping[str, Any]) -> dict[str, str]:
    found, spam = resource["authentication"], resource["spam"]
    verdicts = {"dkim": "none", "SPF": "none"}
    if found:
        signatures = ", ".join(f"@{entry['domain']} : {entry['result']}" for entry in found["dkim"])
        verdicts = {"dkim": f"{{{signatures}}}" if signatures else "none", "SPF": found["spf"]["result"]}
    if spam and _has_spam_report(resource["routeId"]):
        verdicts |= {"spam_score": str(spam["score"]), "spam_report": ", ".join(spam["symbols"])}
    return verdicts


def _has_spam_report(route_id: str | None) -> bool:
    """Return whether the setting of a route asks for the spam score; True without a route."""
    return not InboundRoute.objects.filter(id=route_id, spam_report=False).exists()


def _file_fields(email: InlinedEmail) -> dict[str, str]:
    info = {
        f"attachment{number}": {
            "filename": file.filename,
            "name": file.filename,
            "charset": UTF_8,
            "type": content_type(file),
            **({"content-id": file.entry["contentId"]} if file.entry["contentId"] else {}),
        }
        for number, file in enumerate(email.files, 1)
    }
    ids = {entry["content-id"]: name for name, entry in info.items() if "content-id" in entry}
    fields = {"attachments": str(len(email.files))}
    if info:
        fields |= {"attachment-info": _json(info), "content-ids": _json(ids)}
    return fields


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _render(event: EventBody, secret: str, timestamp: int) -> RequestBody | None:
    email = load_inlined(event["data"])
    if email is None:
        return None
    files = [(f"attachment{number}", file) for number, file in enumerate(email.files, 1)]
    return form_body(form_fields(email), files=files, seed=event["id"])


RECEIVED_BODY = LargeBody(measure_email, _render)
