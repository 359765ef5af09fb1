"""Routing: the workspace and the route of a recipient address, decided at RCPT (docs/decisions/0227).

A signed reply address comes first, then the first route that matches; the shared address of a workspace without routes
for it accepts everything.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import idna
from django.conf import settings

from core.lib.ids import to_uuid
from core.lib.sql import database_time, run
from core.lib.tokens import InvalidToken
from core.workspaces.models import Workspace
from domains.receiving.services import find_receiving_domain
from emails.models import Recipient
from emails.sending.reply_address import PREFIX, read_reply_token
from receiving.arrival import replies
from receiving.arrival.patterns import matches
from receiving.arrival.shared_addresses import find_owner
from receiving.arrival.usage import message_limit, read_usage
from receiving.models import SHARED, InboundRoute

# Mail to a suspended or deleted workspace waits at the sender, then it is refused.
SUSPENSION_TOLERANCE = timedelta(days=7)
MAX_ADDRESS = 320
FIND_BLOCK = "SELECT 1 FROM receiving_senderblock WHERE workspace_id = %s AND sender = ANY(%s) LIMIT 1"


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


def decide_recipient(address: str, *, sender: str, remote_ip: str | None = None) -> Decision:
    """Return the reply to RCPT TO and the recipient.

    sender: the address in MAIL FROM, empty for a report.
    remote_ip: of the host that delivers; None for a simulated message.
    """
    recipient = find_recipient(address)
    if recipient is None:
        return UNKNOWN
    return Decision(_refusal(recipient, sender, remote_ip) or replies.ACCEPTED, recipient)


def find_recipient(address: str) -> RoutedRecipient | None:
    """Return the workspace and the route of an address; None if there is none."""
    local, _, domain = address.rpartition("@")
    name = _a_label(domain)
    if not local or not name or len(address) > MAX_ADDRESS:
        return None
    full, lower = f"{local}@{name}", local.lower()
    if name == settings.RECEIVING_DOMAIN:
        return _find_reply(full, lower, None) or _find_shared(full, lower)
    receiving = find_receiving_domain(name)
    if receiving is None:
        return None
    return _find_reply(full, lower, receiving.workspace) or _find_routed(full, lower, receiving.workspace, name)


def select_route(routes: Iterable[InboundRoute], local_part: str) -> InboundRoute | None:
    """Return the first route that matches: of the lowest priority, then the most specific, then the oldest one."""
    ordered = sorted(routes, key=lambda route: (route.priority, -route.literals, route.created_at, route.id))
    return next((route for route in ordered if route.active and matches(route.match, local_part)), None)


def is_blocked(workspace: Workspace, senders: Iterable[str]) -> bool:
    """Return whether a workspace blocks one of several senders, by its address or its domain."""
    names = {name for sender in senders for name in _blockable_names(sender)}
    return bool(names) and bool(run(FIND_BLOCK, [to_uuid(workspace.id, prefix="ws_"), list(names)]))


def _blockable_names(sender: str) -> set[str]:
    """Return the address and the domain of a sender as a block stores them, with the domain as an A-label."""
    local, _, domain = sender.lower().rpartition("@")
    name = _a_label(domain)
    return {f"{local}@{name}", name} if name else set()


def _find_reply(address: str, local_part: str, owner: Workspace | None) -> RoutedRecipient | None:
    """Return the recipient of a reply address. owner: of the receiving domain; None for RECEIVING_DOMAIN."""
    if not local_part.startswith(PREFIX):
        return None
    try:
        recipient_id = read_reply_token(local_part[len(PREFIX) :])
    except InvalidToken:
        return None
    answered = Recipient.objects.filter(id=recipient_id).select_related("email__workspace").first()
    if answered is None:
        # Retention has deleted the email: only the domain still says whose reply it is.
        return RoutedRecipient(owner, address, local_part) if owner else None
    workspace = answered.email.workspace
    if owner and workspace.id != owner.id:
        return None
    return RoutedRecipient(workspace, address, local_part, reply_to=recipient_id)


def _find_shared(address: str, local_part: str) -> RoutedRecipient | None:
    owner = find_owner(local_part)
    if owner is None:
        return None
    routes = list(InboundRoute.objects.filter(workspace=owner, domain=SHARED))
    if not routes:
        return RoutedRecipient(owner, address, local_part)
    route = select_route(routes, local_part)
    return RoutedRecipient(owner, address, local_part, route) if route else None


def _find_routed(address: str, local_part: str, workspace: Workspace, domain: str) -> RoutedRecipient | None:
    route = select_route(InboundRoute.objects.filter(workspace=workspace, domain=domain), local_part)
    return RoutedRecipient(workspace, address, local_part, route) if route else None


def _refusal(recipient: RoutedRecipient, sender: str, remote_ip: str | None) -> str | None:
    if reply := _inactivity(recipient.workspace):
        return reply
    if recipient.route and recipient.route.action == InboundRoute.RouteAction.REJECT:
        return replies.REJECTED
    if is_blocked(recipient.workspace, [sender]):
        return replies.BLOCKED
    return None if recipient.is_discarded else read_usage(recipient.workspace, remote_ip=remote_ip).refusal


def _inactivity(workspace: Workspace) -> str | None:
    """Return the reply for a workspace that receives nothing now."""
    if not workspace.is_proven:
        return replies.SUSPENDED
    since = inactive_since(workspace)
    if since is None:
        return None
    return replies.SUSPENDED if database_time() - since <= SUSPENSION_TOLERANCE else replies.NO_SUCH_ADDRESS


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
    return {"route": decision.recipient.route, "reply": decision.reply}
