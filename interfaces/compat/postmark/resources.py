"""Resources of Postmark's API, from rows and stored results."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings

from core.lib.datetimes import format_datetime
from core.lib.email_addresses import parse_recipient
from core.lib.ids import id_number, uuid_text
from core.workspaces.models import Workspace
from emails.listing.attachments import list_attachments
from emails.models import Email
from emails.rendered_content import render_email
from emails.states import EmailStatus
from events.kinds import EventKind
from events.models import Event
from interfaces.compat.postmark.errors import error_body, partial_message
from interfaces.compat.postmark.filters import SUPPRESSION_REASONS
from interfaces.compat.postmark.names import shown_id
from interfaces.compat.postmark.templates.requests import with_postmark_content
from interfaces.compat.postmark.webhook_format import COMPLAINT, UNKNOWN_READER, event_bounce_type, metadata_texts
from suppressions.models import Suppression
from templates_app.models import Template

Resource = dict[str, Any]
# https://postmarkapp.com/developer/api/messages-api
STATUSES = {EmailStatus.QUEUED: "Queued", EmailStatus.SCHEDULED: "Queued"}
EVENT_TYPES = {
    EventKind.DELIVERED: "Delivered",
    EventKind.DEFERRED: "Transient",
    EventKind.BOUNCED: "Bounced",
    EventKind.OPENED: "Opened",
    EventKind.CLICKED: "LinkClicked",
    EventKind.UNSUBSCRIBED: "SubscriptionChanged",
}


def sent_resource(request: Mapping[str, Any], result: Mapping[str, Any]) -> Resource:
    """Return the result of one email of a request."""
    if "problem" in result:
        return error_body(result["problem"])
    addresses = {name: request[name] for name in ("To", "Cc", "Bcc") if request.get(name)}
    return {
        **addresses,
        "SubmittedAt": result["createdAt"],
        "MessageID": uuid_text(result["id"]),
        "ErrorCode": 0,
        "Message": partial_message(result["suppressed"]) if "suppressed" in result else "OK",
    }


def message_resource(email: Email) -> Resource:
    return {
        "MessageID": uuid_text(email.id),
        "Tag": email.tags[0] if email.tags else "",
        "MessageStream": shown_id(email.stream),
        "To": [_mailbox(address) for address in email.to],
        "Cc": [_mailbox(address) for address in email.cc],
        "Bcc": [_mailbox(address) for address in email.bcc],
        "Recipients": [parse_recipient(address).spec for address in (*email.to, *email.cc, *email.bcc)],
        "ReceivedAt": format_datetime(email.created_at),
        "From": email.sender,
        "Subject": email.subject,
        "Attachments": [],
        "Status": STATUSES.get(EmailStatus(email.status), "Sent"),
        "TrackOpens": email.track_opens,
        "TrackLinks": "HtmlAndText" if email.track_clicks else "None",
        "Metadata": metadata_texts(email.metadata),
        "Sandboxed": False,
    }


def details_resource(email: Email) -> Resource:
    content = render_email(email)
    events = [_event_resource(event) for event in email.events.all() if event.kind in EVENT_TYPES]
    return {
        **message_resource(email),
        "Attachments": [file.filename for file in list_attachments(email)],
        "HtmlBody": content.html or None,
        "TextBody": content.text or None,
        "Body": "",
        "MessageEvents": events,
    }


def bounce_resource(event: Event, *, is_suppressed: bool) -> Resource:
    email, payload = event.email, event.payload
    assert email is not None
    name, code = event_bounce_type(event.kind, payload.get("reason") or "")
    message = payload.get("message") or ""
    return {
        "RecordType": "Bounce",
        "ID": id_number(event.id, prefix="evt_"),
        "Type": name,
        "TypeCode": code,
        "Name": name,
        "Tag": email.tags[0] if email.tags else None,
        "MessageID": uuid_text(email.id),
        "ServerID": 0,
        "Description": message,
        "Details": message,
        "Email": payload.get("to", ""),
        "From": email.sender,
        "BouncedAt": format_datetime(event.created_at),
        "DumpAvailable": False,
        "Inactive": is_suppressed,
        "CanActivate": name != COMPLAINT,
        "Subject": email.subject,
        "MessageStream": shown_id(email.stream),
    }


def tracking_resource(event: Event, email: Email) -> Resource:
    """Return an open or a click; the program and the place of a recipient are not recorded."""
    is_click = event.kind == EventKind.CLICKED
    return {
        "RecordType": "Click" if is_click else "Open",
        **UNKNOWN_READER,
        "MessageID": uuid_text(email.id),
        "MessageStream": shown_id(email.stream),
        "ReceivedAt": format_datetime(event.created_at),
        "Tag": email.tags[0] if email.tags else "",
        "Recipient": event.payload.get("to", ""),
        **({"OriginalLink": event.payload.get("url"), "ClickLocation": "HTML"} if is_click else {"ReadSeconds": 0}),
    }


def suppression_resource(suppression: Suppression) -> Resource:
    reason, origin = SUPPRESSION_REASONS[Suppression.Reason(suppression.reason)]
    return {
        "EmailAddress": suppression.email,
        "SuppressionReason": reason,
        "Origin": origin,
        "CreatedAt": format_datetime(suppression.created_at),
    }


def template_ids(workspace: Workspace) -> dict[str, str]:
    """Return the ids of the workspace's templates, at most 1,000, by their numbers as text."""
    ids = workspace.templates.order_by().values_list("id", flat=True)
    return {str(id_number(template_id, prefix="tpl_")): template_id for template_id in ids}


def layout_aliases(workspace: Workspace) -> dict[str | None, str]:
    """Return the aliases of the workspace's layouts by their ids; the number of a layout without one."""
    layouts = workspace.templates.filter(kind=Template.TemplateKind.LAYOUT).values_list("id", "alias")
    return {id_: alias or str(id_number(id_, prefix="tpl_")) for id_, alias in layouts}


def template_item(template: Template, layouts: Mapping[str | None, str]) -> Resource:
    return {
        "TemplateId": id_number(template.id, prefix="tpl_"),
        "Name": template.name,
        "Alias": template.alias,
        "Active": True,
        "TemplateType": "Layout" if template.kind == Template.TemplateKind.LAYOUT else "Standard",
        "LayoutTemplate": layouts.get(template.version.layout_id),
    }


def template_resource(template: Template, layouts: Mapping[str | None, str]) -> Resource:
    version, is_layout = template.version, template.kind == Template.TemplateKind.LAYOUT
    html, text = (with_postmark_content(part) if is_layout else part for part in (version.html, version.text))
    content = {"Subject": None if is_layout else version.subject, "HtmlBody": html, "TextBody": text or None}
    return {**template_item(template, layouts), **content, "AssociatedServerId": 0}


def server_resource(workspace: Workspace) -> Resource:
    """Return the members of the server that are not about received email."""
    return {"ID": id_number(workspace.id, prefix="ws_"), "Name": workspace.name, "ApiTokens": [], "Color": "Blue",
            "SmtpApiActivated": False, "DeliveryType": "Live", "TrackOpens": True,
            "TrackLinks": "HtmlAndText", "ServerLink": f"{settings.PUBLIC_URL}/dashboard/", "BounceHookUrl": "",
            "OpenHookUrl": "", "DeliveryHookUrl": "", "ClickHookUrl": "", "PostFirstOpenOnly": False,
            "IncludeBounceContentInHook": False, "EnableSmtpApiErrorHooks": False}  # fmt: skip


def _mailbox(text: str) -> Resource:
    address = parse_recipient(text)
    return {"Email": address.spec, "Name": address.name or None}


def _event_resource(event: Event) -> Resource:
    payload = event.payload
    details = {
        "DeliveryMessage": payload.get("message"),
        "Summary": payload.get("message"),
        "Link": payload.get("url"),
    }
    return {
        "Recipient": payload.get("to", ""),
        "Type": EVENT_TYPES[EventKind(event.kind)],
        "ReceivedAt": format_datetime(event.created_at),
        "Details": {name: value for name, value in details.items() if value},
    }
