"""Names in Postmark's API: those of members in requests, whose case it ignores, and the ids of streams.

Its PHP library writes `htmlBody`. `main` is the stream `outbound` there, and `inbound` accepts no emails. See
https://postmarkapp.com/developer/api/overview.
"""

from typing import Any

from interfaces.compat.errors import invalid_field
from streams.models import MAIN

OUTBOUND, INBOUND = "outbound", "inbound"
# The error code of an email in the inbound stream.
INBOUND_CODE = "inbound_stream"
# Members whose own members are the customer's data.
DATA = frozenset({"Metadata", "TemplateModel", "TestRenderModel"})
# Members of the server that no other request has. https://postmarkapp.com/developer/api/server-api
SERVER = (
    "ApiTokens", "BounceHookUrl", "ClickHookUrl", "Color", "DeliveryHookUrl", "DeliveryType", "EnableSmtpApiErrorHooks",
    "InboundAddress", "InboundHash", "IncludeBounceContentInHook", "OpenHookUrl", "ServerLink", "SmtpApiActivated",
)  # fmt: skip
NAMES = {
    name.lower(): name
    for name in (
        *DATA, "Alias", "Attachments", "Bcc", "Bounce", "Cc", "Click", "Content", "ContentID", "ContentType",
        "Delivery", "Description", "EmailAddress", "Enabled", "From", "Headers", "HtmlBody", "HttpAuth", "HttpHeaders",
        "ID", "InboundDomain", "InboundHookUrl", "InboundSpamThreshold", "IncludeContent", "InlineCss",
        "LayoutTemplate", "MessageStream", "MessageStreamType", "Messages", "Name", "Open", "Password",
        "PostFirstOpenOnly", "RawEmailEnabled", "ReplyTo", "Rule", "SpamComplaint", "Subject", "SubscriptionChange",
        "SubscriptionManagementConfiguration", "Suppressions", "Tag", "TemplateAlias", "TemplateId", "TemplateType",
        "TextBody", "To", "TrackLinks", "TrackOpens", "Triggers", "UnsubscribeHandlingType", "Url", "Username", "Value",
        *SERVER,
    )
}  # fmt: skip


def canonical_names(value: Any) -> Any:
    """Return a JSON value whose members have their documented names; of members with one name, the last counts."""
    if isinstance(value, list):
        return [canonical_names(item) for item in value]
    if not isinstance(value, dict):
        return value
    named = ((NAMES.get(name.lower(), name), member) for name, member in value.items())
    return {name: member if name in DATA else canonical_names(member) for name, member in named}


def shown_id(slug: str) -> str:
    """Return Postmark's id of a stream."""
    return OUTBOUND if slug == MAIN else slug


def read_id(value: Any, *, field: str = "MessageStream") -> str:
    """Return the id of a stream in `/v1`. Raises InvalidFields for the inbound stream."""
    if not isinstance(value, str):
        raise invalid_field(field, "This must be a string.", code="invalid_type")
    if value == INBOUND:
        raise invalid_field(field, "Sending is not supported on the inbound stream.", code=INBOUND_CODE)
    return MAIN if value == OUTBOUND else value
