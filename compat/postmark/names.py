"""Names in requests to Postmark's API, which ignores their case: its PHP library writes `htmlBody`.

See https://postmarkapp.com/developer/api/overview.
"""

from typing import Any

from compat.views import AnyJSONParser

# Members whose own members are the customer's data.
DATA = frozenset({"Metadata", "TemplateModel", "TestRenderModel"})
NAMES = {
    name.lower(): name
    for name in (
        *DATA, "Alias", "Attachments", "Bcc", "Bounce", "Cc", "Click", "Content", "ContentID", "ContentType",
        "Delivery", "Description", "EmailAddress", "Enabled", "From", "Headers", "HtmlBody", "HttpAuth", "HttpHeaders",
        "ID", "IncludeContent", "InlineCss", "LayoutTemplate", "MessageStream", "MessageStreamType", "Messages", "Name",
        "Open", "Password", "PostFirstOpenOnly", "ReplyTo", "SpamComplaint", "Subject", "SubscriptionChange",
        "SubscriptionManagementConfiguration", "Suppressions", "Tag", "TemplateAlias", "TemplateId", "TemplateType",
        "TextBody", "To", "TrackLinks", "TrackOpens", "Triggers", "UnsubscribeHandlingType", "Url", "Username", "Value",
    )
}  # fmt: skip


class PostmarkJSONParser(AnyJSONParser):
    """The parser of the dialect: members have the names of Postmark's documentation."""

    def parse(self, stream: Any, media_type: str | None = None, parser_context: Any = None) -> Any:
        return canonical_names(super().parse(stream, media_type, parser_context))


def canonical_names(value: Any) -> Any:
    """Return a JSON value whose members have their documented names; of members with one name, the last counts."""
    if isinstance(value, list):
        return [canonical_names(item) for item in value]
    if not isinstance(value, dict):
        return value
    named = ((NAMES.get(name.lower(), name), member) for name, member in value.items())
    return {name: member if name in DATA else canonical_names(member) for name, member in named}
