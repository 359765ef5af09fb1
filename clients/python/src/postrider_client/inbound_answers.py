"""Responses of `/v1/inbound` as dataclasses. Text, HTML, names and addresses were written by the sender."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Optional

from postrider_client.wire import read


@dataclass(frozen=True)
class Limit:
    """`limit`: None without one."""

    used: int
    limit: Optional[int]


@dataclass(frozen=True)
class InboundSettings:
    """The settings of receiving.

    `address`: the workspace's address without any DNS; None if the operator has set no RECEIVING_DOMAIN.
    `storage`: bytes of stored messages.
    `messages`: messages of the current day, UTC.
    """

    address: Optional[str]
    mail_hosts: list[str]
    max_message_bytes: int
    storage: Limit
    messages: Limit
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class Mailbox:
    email: str
    name: str


@dataclass(frozen=True)
class ReceivedAttachment:
    """An attachment of a received email.

    `url`: a download without a key, until `url_expires_at`.
    `size`: bytes after decoding.
    """

    id: str
    filename: str
    content_type: str
    size: int
    content_id: Optional[str]
    inline: bool
    method: Optional[str]
    sha256: str
    url: str
    url_expires_at: datetime


@dataclass(frozen=True)
class AnsweredEmail:
    """The sent email that a received one answers.

    `matched_by`: "address" or "message_id".
    `from_recipient`: whether the message is proven to come from `recipient`; without it the match proves no identity.
    `deleted`: True once retention has deleted the sent email, else None.
    """

    email_id: str
    recipient: str
    matched_by: str
    from_recipient: bool
    deleted: Optional[bool]


@dataclass(frozen=True)
class SpfVerdict:
    result: str
    domain: str


@dataclass(frozen=True)
class DkimVerdict:
    result: str
    domain: str
    selector: str


@dataclass(frozen=True)
class DmarcVerdict:
    result: str
    policy: Optional[str]
    domain: str


@dataclass(frozen=True)
class ArcVerdict:
    result: str


@dataclass(frozen=True)
class Authentication:
    """`result`: "pass" if the message is proven to come from the domain of its From."""

    result: str
    spf: SpfVerdict
    dkim: list[DkimVerdict]
    dmarc: DmarcVerdict
    arc: ArcVerdict


@dataclass(frozen=True)
class SpamVerdict:
    score: float
    threshold: float
    is_spam: bool
    symbols: list[str]


@dataclass(frozen=True)
class RemoteHost:
    """The host that delivered a message.

    `ip`: None for a simulated one.
    `tls`: None without TLS.
    """

    ip: Optional[str]
    helo: str
    tls: Optional[str]


@dataclass(frozen=True)
class Download:
    url: str
    url_expires_at: datetime


@dataclass(frozen=True)
class ReceivedItem:
    """A received email in a list, without text, HTML and headers.

    `recipient`: the address of the envelope that received it.
    `authentication`: None before it was read.
    `automatic`: "no", "auto_generated", "auto_replied", "list" or "bulk".
    """

    id: str
    status: str
    route_id: Optional[str]
    recipient: str
    tag: str
    envelope_from: str
    from_: Optional[Mailbox]
    to: list[Mailbox]
    cc: list[Mailbox]
    reply_to: list[Mailbox]
    subject: str
    date: Optional[datetime]
    message_id: Optional[str]
    in_reply_to: Optional[str]
    references: list[str]
    attachments: list[ReceivedAttachment]
    reply_to_email: Optional[AnsweredEmail]
    authentication: Optional[Authentication]
    spam: Optional[SpamVerdict]
    automatic: str
    blocked_reason: Optional[str]
    parse_errors: list[str]
    remote: RemoteHost
    size: int
    received_at: datetime
    expires_at: datetime
    test: bool
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class ReceivedEmail(ReceivedItem):
    """A received email.

    `reply_text`: the text without quoted messages, None if unknown.
    `truncated`: the members that are cut.
    `headers`: names with values, in their order.
    `source`: the download of the message, "raw" in the API.
    """

    text: str = ""
    text_generated: bool = False
    reply_text: Optional[str] = None
    html: str = ""
    truncated: list[str] = field(default_factory=list)
    headers: list[list[str]] = field(default_factory=list)

    @property
    def source(self) -> Download:
        return read(Download, self.raw["raw"])


@dataclass(frozen=True)
class Forwarded:
    """`email_id`: the id of the new email."""

    id: str
    to: str
    email_id: str
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class Redelivered:
    """`deliveries`: the number of webhooks to which the event is posted again."""

    id: str
    deliveries: int
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class Reread:
    """`queued_at`: when the message was queued to be read again."""

    id: str
    queued_at: datetime
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class Route:
    """The rule for recipient addresses of a receiving domain, or of "shared"."""

    id: str
    name: str
    domain: str
    match: str
    priority: int
    action: str
    webhook_ids: list[str]
    forward_to: list[str]
    attachments: str
    include_raw: bool
    require_authenticated: bool
    spam_above: Optional[float]
    replies_only: bool
    store_days: Optional[int]
    active: bool
    created_at: datetime
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class RouteMatch:
    """The route of an address.

    `route`: None for an unknown address and for one that needs no route.
    `reply`: that of the mail server.
    """

    route: Optional[Route]
    reply: str
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class SenderBlock:
    id: str
    sender: str
    created_at: datetime
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class UnblockedSender:
    id: str
    sender: str
    deleted: bool
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
