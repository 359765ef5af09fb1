"""Router: a transport that delivers each message by the first usable transport of its route (docs/decisions/0215).

A message goes to the next transport only while it is certain that the present one has not taken it: no transport gets
the last block before the recipient's row names it, and one that may have the message keeps it.
"""

import time
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import pairwise

from core.delivery.bounces.reasons import FailureReason
from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Failover, Reply, deferred, parked
from core.delivery.message.compose import OutgoingMessage
from core.delivery.transports.circuit_breaker import Clock
from core.delivery.transports.credentials import is_demand
from core.delivery.transports.interface import SendPermit, Transport
from core.delivery.transports.transport_breaker import TransportBreaker
from core.delivery.transports.transports_file import DEFAULT, FailoverKind, TransportRoute, Transports, TransportSpec

# A reached limit is checked again after this time: messages that were refused do not count.
EXHAUSTED_SECONDS = 60.0
# The last time that an entry waited for a removed transport; parked entries come back within 60 s.
REMOVED_SECONDS = 150.0
MAX_CHANGES = 100
ACCEPTANCES = (DeliveryStatus.SENT, DeliveryStatus.DELIVERED)
KINDS: dict[str, FailoverKind] = {
    FailureReason.NETWORK: FailoverKind.UNREACHABLE,
    FailureReason.DESTINATION_SHUT: FailoverKind.UNREACHABLE,
    FailureReason.RATE_LIMITED: FailoverKind.RATE_LIMITED,
    FailureReason.BLOCKLISTED: FailoverKind.BLOCKLISTED,
    FailureReason.TLS: FailoverKind.TLS,
}
# Failures of a relay or provider: it refuses the login, cannot take any message now, or has closed the account (HTTP
# 402).
KINDS_OF_HOSTS: dict[str, FailoverKind] = {
    FailureReason.LOGIN_REFUSED: FailoverKind.LOGIN,
    FailureReason.HOST_TROUBLE: FailoverKind.UNREACHABLE,
    FailureReason.PROVIDER_REFUSED: FailoverKind.LOGIN,
}


class TransportState(StrEnum):
    """The state of a transport.

    OPEN: in use.
    PAUSED: skipped after failures.
    PROBING: the last probe succeeded.
    DRAINING: drained by the operator.
    """

    OPEN = "open"
    PROBING = "probing"
    PAUSED = "paused"
    DRAINING = "draining"


@dataclass(frozen=True)
class TransportReport:
    """The state of a transport in one process.

    since: a time in RFC 3339.
    error: the last failure that concerned all mail.
    """

    name: str
    state: str
    since: str
    error: str = ""


@dataclass(frozen=True)
class TransportChange:
    """A transport was paused after an error, or is used again."""

    name: str
    is_paused: bool
    error: str = ""


class _Member:
    """A transport of the router with its breaker and its limits."""

    def __init__(self, spec: TransportSpec, transport: Transport, *, clock: Clock) -> None:
        self.spec = spec
        self.transport = transport
        self.breaker = TransportBreaker(spec.kind, clock=clock)
        self.is_draining = False
        self.exhausted_until = float("-inf")
        self.error = ""
        self._since = (TransportState.OPEN, datetime.now(UTC))

    @property
    def state(self) -> TransportState:
        if self.is_draining:
            return TransportState.DRAINING
        if self.breaker.is_tripped:
            return TransportState.PROBING if self.breaker.is_recovering else TransportState.PAUSED
        return TransportState.OPEN

    def report(self) -> TransportReport:
        if self.state is not self._since[0]:
            self._since = (self.state, datetime.now(UTC))
        since = self._since[1].isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return TransportReport(self.spec.name, self.state, since, self.error)

    def record(self, outcome: DeliveryOutcome, message: OutgoingMessage) -> None:
        """Count an outcome if it shows whether the transport works; a deferral by the recipient's host shows it."""
        # A transport that takes the last block and never answers would pin all mail, one message after another.
        is_lost = outcome.may_be_delivered
        kind = FailoverKind.UNREACHABLE if is_lost else failover_kind(outcome, self.spec.kind)
        if kind in (FailoverKind.UNREACHABLE, FailoverKind.LOGIN):
            self.error = f"{outcome.reply.code or ''} {outcome.reply.text}".strip()
            is_direct = self.spec.kind == "direct"
            subject = message.recipient.rpartition("@")[2] if is_direct else message.message_id
            self.breaker.record(kind, subject=subject)
        elif kind is not FailoverKind.TLS and (outcome.reply.code or outcome.status in ACCEPTANCES):
            self.breaker.record_success()


class TransportRouter:
    """Several transports as one. Belongs to one event loop; other threads read its states and set its limits."""

    def __init__(
        self, transports: Transports, members: Mapping[str, Transport], *, clock: Clock = time.monotonic
    ) -> None:
        self.transports = transports
        self._clock = clock
        self._members = {
            name: _Member(spec, members[name], clock=clock) for name, spec in transports.transports.items()
        }
        self._changes: deque[TransportChange] = deque(maxlen=MAX_CHANGES)
        # Names of removed transports that messages wait for → the last time.
        self._removed: dict[str, float] = {}

    @property
    def _only(self) -> _Member:
        """The transport of an installation without a file."""
        return next(iter(self._members.values()))

    @property
    def trouble(self) -> str | None:
        """Return a message for the operator if the mail of a route, or of a removed transport, cannot be sent."""
        waiting = [name for name, at in list(self._removed.items()) if self._clock() - at < REMOVED_SECONDS]
        messages = [
            f"The transport {name!r} may have taken messages that wait for it, but it is not in TRANSPORTS_FILE."
            for name in waiting
        ]
        if not self.transports.is_named:
            return " ".join([*messages, *filter(None, [self._only.transport.trouble])]) or None
        stopped = (route for route in self.transports.routes.values() if self._is_stopped(route))
        messages += [f"No transport of the route {route.name!r} works: {self._errors(route)}" for route in stopped]
        return " ".join(messages) or None

    async def deliver(self, message: OutgoingMessage, *, lease: SendPermit) -> DeliveryOutcome:
        """Deliver one message. Every failure is an outcome; only LeaseLost is raised."""
        if message.is_pinned and message.transport not in self._members:
            return self._wait_for_removed(message.transport)
        if not self.transports.is_named:
            return await self._deliver_alone(message, lease)
        if message.is_pinned:
            return await self._deliver_pinned(message, lease)
        return await self._deliver_by_route(message, lease)

    def first_choice(self, route: str) -> str:
        """Return the transport that gets the next message of a route; empty if none can."""
        chosen = self._route(route)
        return next((m.spec.name for m in self._members_of(chosen) if self._is_usable(m, chosen)), "")

    def reports(self) -> list[TransportReport]:
        """Return the states of all transports. Called in any thread."""
        reports = [member.report() for member in self._members.values()]
        if not self.transports.is_named and (error := self._only.transport.trouble):
            # Its own breaker has paused it.
            reports = [replace(reports[0], state=TransportState.PAUSED, error=error)]
        return reports

    def take_changes(self) -> list[TransportChange]:
        """Return the changes since the last call."""
        return [self._changes.popleft() for _ in range(len(self._changes))]

    def set_draining(self, names: Collection[str]) -> list[Transport]:
        """Set the transports that the operator drains; return those whose idle sessions the caller ends."""
        begun = [m.transport for n, m in self._members.items() if n in names and not m.is_draining]
        for name, member in self._members.items():
            member.is_draining = name in names
        return begun

    def set_exhausted(self, name: str, *, seconds: float) -> None:
        """Skip a transport whose daily limit is reached; seconds: until the limit ends."""
        self._members[name].exhausted_until = self._clock() + min(seconds, EXHAUSTED_SECONDS)

    def end_sessions(self) -> None:
        for member in self._members.values():
            member.transport.end_sessions()

    async def _deliver_alone(self, message: OutgoingMessage, lease: SendPermit) -> DeliveryOutcome:
        if self._only.is_draining:
            return _draining()
        return await self._only.transport.deliver(message, lease=lease)

    async def _deliver_pinned(self, message: OutgoingMessage, lease: SendPermit) -> DeliveryOutcome:
        """Deliver by the transport that may have the message, also if it is paused or has reached its daily limit."""
        member = self._members[message.transport]
        return _draining() if member.is_draining else await self._attempt(member, message, lease)

    async def _deliver_by_route(self, message: OutgoingMessage, lease: SendPermit) -> DeliveryOutcome:
        route = self._route(message.route)
        assigned, failed, skipped = message.transport, list[DeliveryOutcome](), list[DeliveryOutcome]()
        for member in self._members_of(route):
            name = member.spec.name
            if not self._is_usable(member, route, message):
                continue
            if name != assigned and not await lease.assign(name):
                continue
            assigned = name
            # While the transport was stored, another message may have begun the probe.
            if not self._lets_pass(member, route, message):
                continue
            outcome = _limited(await self._attempt(member, message, lease), route)
            if not _goes_on(outcome, member.spec, route, message):
                is_unmade = failed and outcome.status is DeliveryStatus.PARKED
                return _without_wait(_last_of(failed)) if is_unmade else _last_of([*failed, outcome])
            (skipped if outcome.status is DeliveryStatus.PARKED else failed).append(outcome)
        if not failed:
            return self._wait(route, skipped, message)
        return _last_of(failed) if len(failed) == len(route.use) else _without_wait(_last_of(failed))

    async def _attempt(self, member: _Member, message: OutgoingMessage, lease: SendPermit) -> DeliveryOutcome:
        with member.breaker.call():
            outcome = await member.transport.deliver(message, lease=lease)
        if outcome.status is not DeliveryStatus.PARKED:
            was_tripped = member.breaker.is_tripped
            member.record(outcome, message)
            if member.breaker.is_tripped is not was_tripped:
                self._changes.append(TransportChange(member.spec.name, not was_tripped, member.error))
        return replace(outcome, transport=member.spec.name)

    def _wait(
        self, route: TransportRoute, skipped: Sequence[DeliveryOutcome], message: OutgoingMessage
    ) -> DeliveryOutcome:
        """Return the outcome of a message that no transport of its route could try."""
        members = self._members_of(route)
        if message.is_whole and all(member.spec.kind == "anymail" for member in members):
            return _unchangeable()
        limited = [member for member in members if self._is_exhausted(member)]
        if limited and not skipped and not any(member.breaker.is_tripped for member in members):
            return replace(_daily_limit(), transport=limited[-1].spec.name)
        if skipped:
            if skipped[-1].exceeds_day and len(skipped) < len(members):
                # Another transport takes it as soon as it can.
                skipped = [*skipped, _wait_for_transport(FailureReason.DESTINATION_SHUT, self._errors(route))]
            # The pace of a receiver ends no wait for another transport.
            chosen = next((one for one in reversed(skipped) if not one.pair), skipped[-1])
            return replace(chosen, retry_after=min(one.retry_after for one in skipped))
        return _wait_for_transport(FailureReason.DESTINATION_SHUT, f"No transport can send now: {self._errors(route)}")

    def _wait_for_removed(self, name: str) -> DeliveryOutcome:
        self._removed[name] = self._clock()
        text = f"The transport {name!r} may have taken the message, and is not configured any more."
        return _wait_for_transport(FailureReason.OUTCOME_UNKNOWN, text)

    def _route(self, name: str) -> TransportRoute:
        return self.transports.routes[name or self.transports.route_of("")]

    def _members_of(self, route: TransportRoute) -> list[_Member]:
        return [self._members[name] for name in route.use]

    def _is_usable(self, member: _Member, route: TransportRoute, message: OutgoingMessage | None = None) -> bool:
        """Return whether an unpinned message of a route may go to a transport now."""
        return self._is_suitable(member, message) and self._lets_pass(member, route, message)

    def _is_suitable(self, member: _Member, message: OutgoingMessage | None) -> bool:
        is_counted = message is not None and message.transport == member.spec.name
        if member.is_draining or (self._is_exhausted(member) and not is_counted):
            return False
        return message is None or member.spec.kind != "anymail" or not message.is_whole

    def _lets_pass(self, member: _Member, route: TransportRoute, message: OutgoingMessage | None) -> bool:
        """Return whether a transport takes messages: if none of the route works, also one that is recovering."""
        if not member.breaker.is_open:
            return not member.is_draining
        is_answering = member.breaker.is_recovering and not member.is_draining
        return is_answering and not any(
            self._is_suitable(other, message) and not other.breaker.is_tripped for other in self._members_of(route)
        )

    def _is_exhausted(self, member: _Member) -> bool:
        return self._clock() < member.exhausted_until

    def _is_stopped(self, route: TransportRoute) -> bool:
        states = {member.state for member in self._members_of(route)}
        return TransportState.PAUSED in states and states <= {TransportState.PAUSED, TransportState.DRAINING}

    def _errors(self, route: TransportRoute) -> str:
        return "; ".join(filter(None, map(self._error, self._members_of(route))))

    def _error(self, member: _Member) -> str:
        """Return why a transport is not in use; empty if it is."""
        if member.state is not TransportState.OPEN:
            error = f" ({member.error})" if member.breaker.is_tripped else ""
            return f"{member.spec.name} is {member.state}{error}"
        return f"{member.spec.name} has reached its daily limit" if self._is_exhausted(member) else ""


def failover_kind(outcome: DeliveryOutcome, kind: str) -> FailoverKind | None:
    """Return the kind of a certain failure that is not about the recipient or the content; None for any other outcome.

    kind: the kind of the transport. For `direct`, a host in trouble or one that demands a login is the recipient's.
    """
    if outcome.may_be_delivered or outcome.is_recipient_fault or not outcome.reason:
        return None
    is_temporary = outcome.status in (DeliveryStatus.DEFERRED, DeliveryStatus.PARKED)
    if kind != "direct" and is_temporary:
        kind_of_host = FailoverKind.LOGIN if is_demand(outcome) else KINDS_OF_HOSTS.get(outcome.reason)
        if kind_of_host:
            return kind_of_host
    if outcome.reason == FailureReason.PROTOCOL and not outcome.reply.code:
        # Something answered before the last block that is no mail host.
        return FailoverKind.UNREACHABLE
    return KINDS.get(outcome.reason)


def _goes_on(outcome: DeliveryOutcome, spec: TransportSpec, route: TransportRoute, message: OutgoingMessage) -> bool:
    """Return whether the next transport of a route may get the message."""
    if outcome.exceeds_day:
        return True
    kind = failover_kind(outcome, spec.kind)
    if not outcome.pair or FailoverKind.PACED not in route.failover_on:
        return kind in route.failover_on
    # A wait for a pace because of a block list ends at once if the route says so, one for a rate does not.
    return message.has_waited or (kind is FailoverKind.BLOCKLISTED and kind in route.failover_on)


def _limited(outcome: DeliveryOutcome, route: TransportRoute) -> DeliveryOutcome:
    """Return an outcome with the longest wait for a pace, if the route has a transport after this one."""
    if not outcome.pair or not route.paced_after_seconds or outcome.transport == route.use[-1]:
        return outcome
    return replace(outcome, paced_at_most=timedelta(seconds=route.paced_after_seconds))


def pinned_transport(earlier: str | None, outcome: DeliveryOutcome) -> str | None:
    """Return the transport that may have the message after an attempt; None if none may.

    earlier: that of earlier attempts, about which a refusal at this one says nothing.
    """
    return earlier or ((outcome.transport or DEFAULT) if outcome.may_be_delivered else None)


def _last_of(outcomes: Sequence[DeliveryOutcome]) -> DeliveryOutcome:
    """Return the outcome of an attempt: the last one, with the transports that failed before it."""
    failovers = tuple(Failover(outcome, following.transport) for outcome, following in pairwise(outcomes))
    # Another transport may work before a listing ends.
    return replace(outcomes[-1], failovers=failovers, retry_after=min(one.retry_after for one in outcomes))


def _without_wait(outcome: DeliveryOutcome) -> DeliveryOutcome:
    """Return an outcome without the wait for a block list: a transport that was not tried may take the message soon."""
    return replace(outcome, retry_after=timedelta(0))


def _draining() -> DeliveryOutcome:
    return _wait_for_transport(FailureReason.DESTINATION_SHUT, "The operator drains the transport.")


def _wait_for_transport(reason: FailureReason, text: str) -> DeliveryOutcome:
    return parked(reason, text, waits_for="transport")


def _unchangeable() -> DeliveryOutcome:
    text = "The transports of the route are providers, which cannot send a signed or encrypted message unchanged."
    return DeliveryOutcome(DeliveryStatus.FAILED, Reply(0, text), FailureReason.PROVIDER_REFUSED)


def _daily_limit() -> DeliveryOutcome:
    return deferred(FailureReason.DAILY_LIMIT, "The daily limit of the transport is reached; it ends at midnight UTC.")
