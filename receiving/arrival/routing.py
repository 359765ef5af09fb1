"""Routing: the workspace and the route of a recipient address, decided at RCPT (docs/decisions/0227).

A signed reply address comes first, then the first route that matches; the shared address of a workspace without routes
for it accepts everything.
"""

import itertools
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

import idna
from django.conf import settings

from core.lib.ids import from_uuid, to_uuid
from core.lib.sql import run_replanned
from core.lib.tokens import InvalidToken
from core.workspaces.models import Workspace
from domains.models import ReceivingDomain
from emails.sending.reply_address import PREFIX, read_reply_token
from receiving.arrival import replies
from receiving.arrival.patterns import matches
from receiving.arrival.usage import USE, ReceivingUse, counted_host, message_limit, use_of
from receiving.models import SHARED, InboundRoute

# Mail to a suspended or deleted workspace waits at the sender, then it is refused.
SUSPENSION_TOLERANCE = timedelta(days=7)
MAX_ADDRESS = 320
# In the order of the models' fields. Others are read when they are needed.
WORKSPACE_COLUMNS = ("id", "plan", "own_limits", "suspended_at", "is_proven", "deletes_at")
ROUTE_COLUMNS = ("id", "match", "action", "attachments", "include_raw", "store_days", "active")
# The senders that a workspace blocks; other statements have the names, too.
BLOCKS = "EXISTS (SELECT FROM receiving_senderblock b WHERE b.workspace_id = {workspace} AND b.sender = ANY({senders}))"
# Each lookup is LATERAL, so that a plan for many addresses reads no table as a whole.
FIND = f"""
SELECT asked.number, answered.workspace_id, statement_timestamp(),
       {BLOCKS.format(workspace="w.id", senders="asked.senders")}, use.*,
       {", ".join(f"w.{name}" for name in WORKSPACE_COLUMNS)}, {", ".join(f"r.{name}" for name in ROUTE_COLUMNS)}
  FROM json_to_recordset(%s) AS asked (number int, domain text, name text, box text, answered uuid, senders text[],
                                       address inet)
  LEFT JOIN LATERAL (
    SELECT e.workspace_id FROM emails_recipient p JOIN emails_email e ON e.id = p.email_id
     WHERE p.id = asked.answered LIMIT 1) answered ON true
  CROSS JOIN LATERAL (
    SELECT workspace_id FROM domains_receivingdomain
     WHERE name = asked.name AND status = '{ReceivingDomain.ReceivingStatus.ACTIVE.value}' AND proven_at IS NOT NULL
    UNION ALL SELECT answered.workspace_id WHERE asked.name IS NULL AND answered.workspace_id IS NOT NULL
    UNION ALL SELECT workspace_id FROM receiving_sharedaddress WHERE local_part = asked.box LIMIT 1) owner
  CROSS JOIN LATERAL (SELECT * FROM workspaces_workspace WHERE id = owner.workspace_id LIMIT 1) w
  CROSS JOIN LATERAL ({USE.format("asked.address", workspace="w.id")}) use
  LEFT JOIN LATERAL (
    SELECT * FROM receiving_inboundroute WHERE workspace_id = w.id AND domain = asked.domain) r ON true
 ORDER BY asked.number, r.priority, r.literals DESC, r.created_at, r.id
"""  # noqa: S608 - constants


@dataclass(frozen=True)
class RoutedRecipient:
    """A recipient address of a workspace.

    local_part: in lower case.
    route: None for the default route.
    """

    workspace: Workspace
    address: str
    local_part: str
    route: InboundRoute | None = None
    reply_to: str | None = None

    @property
    def tag(self) -> str:
        """The part after the first plus sign (RFC 5233)."""
        return self.address.rpartition("@")[0].partition("+")[2][:64]

    @property
    def is_discarded(self) -> bool:
        return self.route is not None and self.route.action == InboundRoute.RouteAction.DISCARD

    @property
    def max_bytes(self) -> int:
        """The size of the largest message."""
        return int(settings.RECEIVING_MAX_BYTES) if self.is_discarded else message_limit(self.workspace)


@dataclass(frozen=True)
class Decision:
    """The reply to RCPT. recipient: None if no workspace has the address."""

    reply: str
    recipient: RoutedRecipient | None = None

    @property
    def is_accepted(self) -> bool:
        return self.reply == replies.ACCEPTED


UNKNOWN = Decision(replies.NO_SUCH_ADDRESS)


@dataclass(frozen=True)
class AskedRecipient:
    """A recipient address of RCPT TO.

    sender: the address in MAIL FROM, empty for a report.
    remote_ip: of the host that delivers; None for a simulated message.
    """

    address: str
    sender: str
    remote_ip: str | None = None

    @property
    def local_part(self) -> str:
        """The local part in lower case."""
        return self.address.rpartition("@")[0].lower()

    @cached_property
    def domain(self) -> str:
        """The domain as an A-label; empty for an address that no workspace has."""
        is_usable = self.local_part and len(self.address) <= MAX_ADDRESS and self.address.isprintable()
        return _a_label(self.address.rpartition("@")[2]) if is_usable else ""

    @property
    def is_shared(self) -> bool:
        return self.domain == settings.RECEIVING_DOMAIN

    @cached_property
    def answered(self) -> str | None:
        """The id of the recipient in a signed reply address."""
        if not self.local_part.startswith(PREFIX):
            return None
        try:
            return read_reply_token(self.local_part[len(PREFIX) :])
        except InvalidToken:
            return None

    def row(self, number: int) -> dict[str, Any]:
        """Return the values of FIND."""
        return {
            "number": number,
            "domain": SHARED if self.is_shared else self.domain,
            "box": self.local_part.partition("+")[0] if self.is_shared else None,
            "name": None if self.is_shared else self.domain,
            "answered": self.answered and str(to_uuid(self.answered)),
            "senders": sorted(blockable_names([self.sender])),
            "address": counted_host(self.remote_ip),
        }


@dataclass(frozen=True)
class FoundRecipient:
    """The rows of FIND about an address.

    answering: the workspace of the email that it answers; None if it is no signed reply address, or the email is
    deleted.
    routes: of the domain, in their order.
    """

    asked: AskedRecipient
    workspace: Workspace
    answering: str | None
    now: datetime
    is_blocked: bool
    use: ReceivingUse
    routes: Sequence[InboundRoute]

    def decide(self) -> Decision:
        recipient = self._recipient()
        return Decision(self._refusal(recipient) or replies.ACCEPTED, recipient) if recipient else UNKNOWN

    def _recipient(self) -> RoutedRecipient | None:
        asked, workspace = self.asked, self.workspace
        address, local_part = f"{asked.address.rpartition('@')[0]}@{asked.domain}", asked.local_part
        if asked.answered and self.answering == workspace.id:
            return RoutedRecipient(workspace, address, local_part, reply_to=asked.answered)
        if asked.answered and self.answering is None and not asked.is_shared:
            # Retention has deleted the email: only the domain still says whose reply it is.
            return RoutedRecipient(workspace, address, local_part)
        route = select_route(self.routes, local_part)
        is_default = asked.is_shared and not self.routes
        return RoutedRecipient(workspace, address, local_part, route) if route or is_default else None

    def _refusal(self, recipient: RoutedRecipient) -> str | None:
        if reply := self._inactivity():
            return reply
        if recipient.route and recipient.route.action == InboundRoute.RouteAction.REJECT:
            return replies.REJECTED
        if self.is_blocked:
            return replies.BLOCKED
        return None if recipient.is_discarded else self.use.refusal

    def _inactivity(self) -> str | None:
        """Return the reply for a workspace that receives nothing now."""
        if not self.workspace.is_proven:
            return replies.SUSPENDED
        since = inactive_since(self.workspace)
        if since is None:
            return None
        return replies.SUSPENDED if self.now - since <= SUSPENSION_TOLERANCE else replies.NO_SUCH_ADDRESS


def decide_recipient(address: str, *, sender: str, remote_ip: str | None = None) -> Decision:
    """Return the reply to RCPT TO and the recipient; see AskedRecipient."""
    return decide_recipients([AskedRecipient(address, sender, remote_ip)])[0]


def decide_recipients(asked: Sequence[AskedRecipient]) -> list[Decision]:
    """Return the replies to RCPT TO and the recipients, found with one statement."""
    rows = [one.row(number) for number, one in enumerate(asked) if one.domain]
    found = _find(asked, rows) if rows else {}
    return [found[number].decide() if number in found else UNKNOWN for number in range(len(asked))]


def _find(asked: Sequence[AskedRecipient], rows: Sequence[dict[str, Any]]) -> dict[int, FoundRecipient]:
    """Return the workspaces that have the addresses, by the numbers of the rows."""
    found: dict[int, FoundRecipient] = {}
    by_number = itertools.groupby(run_replanned(FIND, [json.dumps(rows)]), key=lambda row: int(row[0]))
    for number, lines in by_number:
        (first, *_) = routed = list(lines)
        _, answering, now, is_blocked, *counts = first[: -len(WORKSPACE_COLUMNS) - len(ROUTE_COLUMNS)]
        workspace = _workspace(first[-len(WORKSPACE_COLUMNS) - len(ROUTE_COLUMNS) : -len(ROUTE_COLUMNS)])
        found[number] = FoundRecipient(
            asked[number],
            workspace,
            answering and from_uuid(answering, prefix="ws_"),
            now,
            is_blocked,
            use_of(workspace, *counts),
            [_route(row[-len(ROUTE_COLUMNS) :]) for row in routed if row[-len(ROUTE_COLUMNS)]],
        )
    return found


def _workspace(values: Sequence[Any]) -> Workspace:
    """Return a workspace with WORKSPACE_COLUMNS."""
    id_, plan, own_limits, *others = values
    loaded = [from_uuid(id_, prefix="ws_"), plan, json.loads(own_limits), *others]
    return Workspace.from_db(None, WORKSPACE_COLUMNS, loaded)


def _route(values: Sequence[Any]) -> InboundRoute:
    """Return a route with ROUTE_COLUMNS."""
    id_, *others = values
    return InboundRoute.from_db(None, ROUTE_COLUMNS, [from_uuid(id_, prefix="rt_"), *others])


def select_route(routes: Iterable[InboundRoute], local_part: str) -> InboundRoute | None:
    """Return the first active route that matches. routes: in their order."""
    return next((route for route in routes if route.active and matches(route.match, local_part)), None)


def blockable_names(senders: Iterable[str]) -> set[str]:
    """Return the addresses and the domains of senders as blocks store them, with the domains as A-labels."""
    names: set[str] = set()
    for sender in senders:
        local, _, domain = sender.lower().rpartition("@")
        if (name := _a_label(domain)) and sender.isprintable():
            names |= {f"{local}@{name}", name}
    return names


def inactive_since(workspace: Workspace) -> datetime | None:
    """Return the time since which a workspace is suspended or deleted."""
    grace = timedelta(days=settings.WORKSPACE_DELETION_DAYS)
    deleted_at = workspace.deletes_at - grace if workspace.deletes_at else None
    return min(filter(None, (workspace.suspended_at, deleted_at)), default=None)


def _a_label(domain: str) -> str:
    name = domain.lower().rstrip(".")
    if name.isascii():
        return name
    try:
        return idna.encode(name, uts46=True).decode()
    except idna.IDNAError:
        return ""


def find_route(workspace: Workspace, address: str) -> dict[str, Any]:
    """Return the route that decides about an address of a workspace, and the reply to RCPT without a sender."""
    decision = decide_recipient(address, sender="")
    if decision.recipient is None or decision.recipient.workspace.id != workspace.id:
        return {"route": None, "reply": replies.NO_SUCH_ADDRESS}
    route = decision.recipient.route
    # With all columns, unless it was deleted in the meantime.
    return {"route": route and InboundRoute.objects.filter(id=route.id).first(), "reply": decision.reply}
