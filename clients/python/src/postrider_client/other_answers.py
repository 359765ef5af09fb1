"""Responses that are no JSON of the API: an export, and the body of a webhook."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from postrider_client.transport import Reply


@dataclass(frozen=True)
class Export:
    csv: str
    truncated: bool
    """Whether more than 10,000 emails match."""


@dataclass(frozen=True)
class WebhookEvent:
    """The body posted to a webhook: one event of one recipient."""

    id: str
    type: str
    event: str
    created_at: datetime
    data: dict[str, Any]
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


def export_of(reply: Reply) -> Export:
    """Return the export in a response."""
    return Export(reply.body.decode(), reply.headers.get("X-Export-Truncated") == "true")
