"""Causes of bounces, deferrals and failures: the most frequent reasons and receiving hosts, from the newest events.

See docs/decisions/0248, 0249, 0345 and 0347.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings

from analytics.advice import Advice, advice_for_host, advice_for_reason
from core.delivery.bounces.reasons import FailureReason
from core.delivery.receivers import Receiver
from core.lib.ids import from_uuid, to_uuid
from core.lib.sql import local_settings, run
from core.workspaces.models import Workspace
from events.kinds import EventKind
from streams.services import existing_stream

# Bounds the time for any number of events and of domains in them.
MAX_EVENTS = 10_000
MAX_HOSTS = 20
# The kind is a constant of the statement, so that the planner can use the partial index. Events of emails that were
# deleted are deleted, too.
NEWEST = """
WITH newest AS MATERIALIZED (
    SELECT number, email_id, recipient_id, created_at, payload FROM emails_event
     WHERE workspace_id = %(workspace)s AND kind = '{kind}' AND created_at BETWEEN %(start)s AND %(end)s
     ORDER BY created_at DESC LIMIT %(limit)s
)
SELECT n.email_id, n.recipient_id, n.created_at, payload->>'to', payload->>'reason', payload->>'message',
       payload->>'code', payload->>'enhancedCode', r.receiver,
       e.is_test OR r.diversion IS NOT NULL OR e.stream <> coalesce(%(stream)s, e.stream)
  FROM newest n JOIN emails_email e ON e.id = n.email_id LEFT JOIN emails_recipient r ON r.id = n.recipient_id
 ORDER BY n.created_at DESC, n.number DESC
"""
# Compiling the statement takes longer than running it.
PLANNER = {"jit": "off"}
# Characters around an address in a reply.
SEPARATORS = re.compile(r"""([\s<>()\[\]{}"',;:=|]+)""")
MASK = "…"


@dataclass(frozen=True)
class BounceSample:
    """The newest event of a group.

    message: the reply, without addresses.
    code: None without a reply.
    """

    email_id: str
    created_at: datetime
    code: int | None
    enhanced_code: str | None
    message: str


@dataclass(frozen=True)
class BounceReason:
    """share: the share of all recipients of the causes."""

    reason: str
    recipients: int
    share: float
    advice: Advice
    sample: BounceSample


@dataclass(frozen=True)
class BouncingHost:
    """A host that refused email.

    name: the name of a receiver, or a domain of recipients.
    sample: an event with the host's most frequent reason, top_reason.
    """

    name: str
    recipients: int
    share: float
    top_reason: str
    advice: Advice
    sample: BounceSample


@dataclass(frozen=True)
class BounceCauses:
    """The causes of one kind of event, most frequent first. Each recipient counts once, with the newest event.

    counted_from: start, or later if the range has more than MAX_EVENTS events.
    other_hosts: recipients at hosts beyond MAX_HOSTS.
    """

    event: EventKind
    start: datetime
    end: datetime
    counted_from: datetime
    recipients: int
    reasons: list[BounceReason]
    hosts: list[BouncingHost]
    other_hosts: int


@dataclass(frozen=True)
class _Failure:
    """An event.

    reply_code: as text.
    receiver: the key of the recipient's receiver, if it is stored.
    """

    email_id: str
    created_at: datetime
    address: str
    reason: str
    message: str
    reply_code: str | None
    enhanced_code: str | None
    receiver: str | None

    @property
    def domain(self) -> str:
        return self.address.rpartition("@")[2].lower()

    @property
    def sample(self) -> BounceSample:
        code = int(self.reply_code) if self.reply_code else None
        message = mask_addresses(self.message, local_part=self.address.rpartition("@")[0])
        return BounceSample(self.email_id, self.created_at, code, self.enhanced_code, message)


def read_causes(
    workspace: Workspace, *, event: EventKind, start: datetime, end: datetime, stream: str = ""
) -> BounceCauses:
    """Return the causes of the live emails' events from start to end, both included.

    event: one of events.kinds.FAILURE_KINDS.
    stream: count its emails only.
    Raises StreamNotFound.
    """
    slug = existing_stream(workspace, stream).slug if stream else None
    values = {"workspace": to_uuid(workspace.id, prefix="ws_"), "start": start, "end": end, "stream": slug}
    with local_settings(PLANNER):
        rows = run(NEWEST.format(kind=event.value), {**values, "limit": MAX_EVENTS + 1})
    failures = list(_newest_by_recipient(rows[:MAX_EVENTS]))
    hosts = _group_by_host(failures)
    return BounceCauses(
        event,
        start,
        end,
        counted_from=rows[MAX_EVENTS - 1][2] if len(rows) > MAX_EVENTS else start,
        recipients=len(failures),
        reasons=_reasons(failures),
        hosts=[_host(name, receiver, group, total=len(failures)) for (name, receiver), group in hosts[:MAX_HOSTS]],
        other_hosts=sum(len(group) for _, group in hosts[MAX_HOSTS:]),
    )


def mask_addresses(text: str, *, local_part: str = "") -> str:
    """Return a reply without email addresses, and without a word that is the local part of the recipient's."""
    hidden = local_part.lower()
    words = SEPARATORS.split(text)
    return "".join(MASK if "@" in word or (hidden and word.lower() == hidden) else word for word in words)


def _newest_by_recipient(rows: list[tuple[Any, ...]]) -> Iterator[_Failure]:
    seen = set()
    for (
        email_id,
        recipient_id,
        created_at,
        address,
        reason,
        message,
        code,
        enhanced_code,
        receiver,
        is_excluded,
    ) in rows:
        if not is_excluded and recipient_id not in seen:
            seen.add(recipient_id)
            cause = reason or FailureReason.UNDETERMINED.value
            yield _Failure(
                from_uuid(email_id), created_at, address or "", cause, message or "", code, enhanced_code, receiver
            )


def _reasons(failures: list[_Failure]) -> list[BounceReason]:
    groups: defaultdict[str, list[_Failure]] = defaultdict(list)
    for failure in failures:
        groups[failure.reason].append(failure)
    return [
        BounceReason(reason, len(group), len(group) / len(failures), advice_for_reason(reason), group[0].sample)
        for reason, group in _largest_first(groups)
    ]


Host = tuple[str, Receiver | None]


def _group_by_host(failures: list[_Failure]) -> list[tuple[Host, list[_Failure]]]:
    groups: defaultdict[Host, list[_Failure]] = defaultdict(list)
    for failure in failures:
        groups[_host_of(failure)].append(failure)
    return _largest_first(groups)


def _host_of(failure: _Failure) -> Host:
    """Return the name of the host, and its receiver if it is in the table.

    The receiver is not stored if only a relay knows the mail host; the reply may name it then.
    """
    table = settings.RECEIVERS
    if failure.receiver:
        receiver = table.find(failure.receiver)
        return receiver.name if receiver else failure.receiver, receiver
    receiver = table.receiver_of_mailbox_domain(failure.domain) or table.receiver_of_reply(failure.message)
    return receiver.name if receiver else failure.domain, receiver


def _host(name: str, receiver: Receiver | None, group: list[_Failure], *, total: int) -> BouncingHost:
    ((top_reason, _),) = Counter(failure.reason for failure in group).most_common(1)
    sample = next(failure.sample for failure in group if failure.reason == top_reason)
    advice = advice_for_host(receiver, top_reason)
    return BouncingHost(name, len(group), len(group) / total, top_reason, advice, sample)


def _largest_first(groups: Mapping[Any, list[_Failure]]) -> list[tuple[Any, list[_Failure]]]:
    return sorted(groups.items(), key=lambda item: (-len(item[1]), str(item[0])))
