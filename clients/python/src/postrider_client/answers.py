"""Responses of the API as dataclasses.

`raw` is the unchanged response, including fields that a newer server added.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Optional


@dataclass(frozen=True)
class Warning:  # noqa: A001 - the API's name
    code: str
    message: str
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class Accepted:
    id: str
    status: str
    created_at: datetime
    warnings: Optional[list[Warning]]
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class Checked:
    """The rendered email of a dry run."""

    subject: str
    html: str
    text: str
    warnings: list[Warning]
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class BatchEmail:
    index: int
    to: str
    id: str


@dataclass(frozen=True)
class Rejection:
    index: int
    to: str
    code: str


@dataclass(frozen=True)
class BatchAccepted:
    """`rejected`: suppressed recipients, which get no email."""

    queued: int
    ids: list[str]
    emails: list[BatchEmail]
    rejected: list[Rejection]
    warnings: Optional[list[Warning]]
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class EmailItem:
    """An email in a list.

    `test`: True for a test email, else None.
    `stream`: None for `main`.
    """

    id: str
    to: str
    from_: str
    subject: str
    status: str
    created_at: datetime
    sent_at: Optional[datetime]
    test: Optional[bool]
    stream: Optional[str]
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class Recipient:
    """`reply_address`: the address in Reply-To, with `reply_tracking`, else None."""

    email: str
    type: str
    status: str
    sent_at: Optional[datetime]
    delivered_at: Optional[datetime]
    error_message: Optional[str]
    reason: Optional[str]
    reply_address: Optional[str]


@dataclass(frozen=True)
class KeptFile:
    filename: str
    content_type: str
    size: int


@dataclass(frozen=True)
class Wait:
    """`detail`: what ends it."""

    cause: str
    since: datetime
    detail: str


@dataclass(frozen=True)
class Email:
    """An email with its content and recipients.

    `stream`: None for `main`.
    `waiting_for`: why the email is not sent now, else None.
    """

    id: str
    to: str
    from_: str
    subject: str
    status: str
    html_content: str
    text: str
    created_at: datetime
    scheduled_for: Optional[datetime]
    sent_at: Optional[datetime]
    delivered_at: Optional[datetime]
    error_message: Optional[str]
    tags: list[str]
    retry_count: int
    reply_to: Optional[str]
    cc: list[str]
    bcc: list[str]
    metadata: Optional[dict[str, Any]]
    template_id: Optional[str]
    headers: dict[str, str]
    attachments: list[KeptFile]
    test: bool
    stream: Optional[str]
    recipients: list[Recipient]
    waiting_for: Optional[Wait]
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class Export:
    """`truncated`: more than 10,000 emails match."""

    csv: str
    truncated: bool


@dataclass(frozen=True)
class SentAttachment:
    """A file of a sent email. `url` works without a key until `url_expires_at`."""

    id: str
    filename: str
    content_type: str
    size: int
    content_id: Optional[str]
    url: str
    url_expires_at: datetime
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class TimelineEvent:
    id: str
    event_type: str
    created_at: datetime
    sent_to_webhook: bool
    payload: dict[str, Any]
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class Cancelled:
    id: str
    status: str


@dataclass(frozen=True)
class Rescheduled:
    id: str
    status: str
    created_at: datetime
    scheduled_for: datetime
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class Deleted:
    id: str
    deleted: bool
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class TemplateItem:
    id: str
    name: str
    subject: str
    alias: Optional[str]
    strict_variables: bool
    created_at: datetime
    updated_at: datetime
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class Template:
    id: str
    name: str
    subject: str
    html_content: str
    text_content: str
    alias: Optional[str]
    strict_variables: bool
    created_at: datetime
    updated_at: datetime
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class Preview:
    subject: str
    html: str
    text: str
    missing_variables: list[str]
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class StreamCounts:
    """The last 30 UTC days. `complained` counts recipients, the others emails."""

    total: int
    delivered: int
    bounced: int
    opened: int
    clicked: int
    complained: int


@dataclass(frozen=True)
class Stream:
    """`counts`: None in the response to a change."""

    id: str
    name: str
    description: str
    kind: str
    unsubscribe: str
    scope: str
    own_bounces: bool
    ignores_unsubscribes: bool
    public: bool
    priority: str
    track_opens: bool
    track_clicks: bool
    transport_route: Optional[str]
    archived_at: Optional[datetime]
    paused_at: Optional[datetime]
    paused_reason: str
    created_at: datetime
    counts: Optional[StreamCounts]
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class Alert:
    """An alert.

    `stream`: None for all emails.
    `value`: a percentage; None with fewer than 100 emails, or without a quota.
    """

    id: str
    metric: str
    stream: Optional[str]
    threshold: float
    email_owners: bool
    value: Optional[float]
    triggered_at: Optional[datetime]
    last_triggered_at: Optional[datetime]
    created_at: datetime
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class Suppression:
    """`stream`: the only stream that is blocked; None if all are."""

    id: str
    email: str
    reason: str
    created_at: datetime
    stream: Optional[str]
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class DomainRecord:
    record: str
    type: str
    name: str
    fqdn: str
    value: str
    ttl: int
    priority: Optional[int]
    required: bool
    status: str
    found: Optional[str]
    error: Optional[str]
    note: Optional[str]


@dataclass(frozen=True)
class TrackingHost:
    """The host of the links in a domain's emails; emails use it while its status is "active"."""

    host: str
    status: str
    error: Optional[str]


@dataclass(frozen=True)
class Receiving:
    """Whether email to a domain is received: while its status is "active". `error`: why none arrives."""

    enabled: bool
    status: str
    error: Optional[str]


@dataclass(frozen=True)
class Domain:
    """`receiving`: None from a service that receives no email."""

    id: str
    name: str
    status: str
    tls: str
    open_tracking: Optional[bool]
    click_tracking: Optional[bool]
    tracking: Optional[TrackingHost]
    receiving: Optional[Receiving]
    records: list[DomainRecord]
    warnings: Optional[list[Warning]]
    created_at: datetime
    verified_at: Optional[datetime]
    last_checked_at: Optional[datetime]
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class Webhook:
    """A webhook.

    `secret`: only in the responses of create and rotate_secret, otherwise None.
    `streams`: None for all of them.

    `headers`: further headers of the requests by name, with values that show nothing; None without any.
    """

    id: str
    url: str
    events: list[str]
    streams: Optional[list[str]]
    format: str
    headers: Optional[Mapping[str, str]]
    active: bool
    disabled_reason: Optional[str]
    created_at: datetime
    secret: Optional[str] = field(repr=False)
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class WebhookDelivery:
    """`body` and `attempts`: only in the response of `webhooks.delivery`, otherwise None."""

    id: str
    webhook_id: str
    event_id: str
    event: str
    test: bool
    status: str
    attempt_count: int
    status_code: Optional[int]
    error: Optional[str]
    next_attempt_at: Optional[datetime]
    created_at: datetime
    succeeded_at: Optional[datetime]
    body: Optional[str]
    attempts: Optional[list[dict[str, Any]]]
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class WebhookEvent:
    """The body posted to a webhook: one event of one recipient."""

    id: str
    type: str
    event: str
    created_at: datetime
    data: dict[str, Any]
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class FeedEvent:
    """An event of the workspace, with the fields of a webhook body. `cursor`: pass it as `after` to continue."""

    id: str
    type: str
    event: str
    created_at: datetime
    cursor: str
    data: dict[str, Any]
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class Breakdown:
    delivered: int
    bounced: int
    opened: int
    clicked: int


@dataclass(frozen=True)
class Rates:
    """Rates between 0 and 1."""

    delivery_rate: float
    bounce_rate: float
    open_rate: float
    click_rate: float


@dataclass(frozen=True)
class Analytics:
    """from_ and to: the range in whole hours, None if the request had none."""

    from_: Optional[datetime]
    to: Optional[datetime]
    total: int
    breakdown: Breakdown
    rates: Rates
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class DailyVolume:
    """`date` is a day in UTC, such as 2026-11-21."""

    date: str
    total: int
    delivered: int
    bounced: int
    opened: int


@dataclass(frozen=True)
class BounceSample:
    """The newest event of a group. `message`: the reply of the mail server, without addresses."""

    email_id: str
    created_at: datetime
    code: Optional[int]
    enhanced_code: Optional[str]
    message: str


@dataclass(frozen=True)
class BounceReason:
    """A reason of bounces.

    `share`: the share of all recipients, between 0 and 1.
    `docs_url`: the page that explains the advice.
    """

    reason: str
    recipients: int
    share: float
    advice: str
    docs_url: str
    sample: BounceSample


@dataclass(frozen=True)
class BouncingHost:
    """`name`: a mail provider such as Google, or a domain of recipients."""

    name: str
    recipients: int
    share: float
    top_reason: str
    advice: str
    docs_url: str
    sample: BounceSample


@dataclass(frozen=True)
class BounceCauses:
    """The causes of bounces.

    `counted_from`: later than `from_` if the range has too many events.
    `other_hosts`: recipients elsewhere.
    """

    event: str
    from_: datetime
    to: datetime
    counted_from: datetime
    recipients: int
    reasons: list[BounceReason]
    hosts: list[BouncingHost]
    other_hosts: int
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class QueueStats:
    waiting: int
    active: int
    delayed: int
    completed: int
    failed: int
    paused: int


@dataclass(frozen=True)
class Workspace:
    id: str
    name: str
    plan: str


@dataclass(frozen=True)
class KeyLimits:
    """The limits of an API key. An empty list or None is no limit."""

    domains: list[str]
    networks: list[str]
    templates: list[str]
    requests_per_second: Optional[int]
    streams: Optional[list[str]]


@dataclass(frozen=True)
class Key:
    id: str
    name: str
    scope: str
    test: bool
    limits: KeyLimits


@dataclass(frozen=True)
class Quota:
    """`limit` and `remaining`: None if the plan has no limit."""

    limit: Optional[int]
    used: int
    remaining: Optional[int]
    resets_at: datetime


@dataclass(frozen=True)
class Me:
    workspace: Workspace
    key: Key
    quota: Quota
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
