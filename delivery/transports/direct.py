"""Hand each message to the mail hosts of its recipient's domain."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta

from delivery.bounces.reasons import RECIPIENT_FAULTS, Reason
from delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply, deferred, safe_text
from delivery.message.delivery_request import DeliveryRequest, History
from delivery.transports.destinations import DestinationBusy, Destinations, Limits
from delivery.transports.interface import Lease
from delivery.transports.smtp.attempt import Attempt
from delivery.transports.smtp.mx import MOST_ADDRESSES, LoopsBack, NoRoute, NoSuchDomain, NullMx, Route, Routes
from delivery.transports.smtp.server import RFC_5321, Server, Timeouts
from delivery.transports.smtp.session_factory import SessionFactory
from lib.address_guard import TargetRefused
from lib.resolver import DnsTrouble

# A newcomer gets two connections, so that a silent one cannot hold many of a worker's sessions.
DIRECT_LIMITS = Limits(connections=10, first=2)
# F32: a zone may vanish for a moment; so NXDOMAIN is asked for twice.
CONFIRM_AFTER = timedelta(minutes=5)


@dataclass(frozen=True)
class _Fact:
    """What the DNS says for good: the enhanced code (RFC 3463, RFC 7505) and the reason of the bounce."""

    code: str
    reason: Reason


FACTS: dict[type[NoRoute], _Fact] = {
    NullMx: _Fact("5.1.10", Reason.BAD_DOMAIN),
    LoopsBack: _Fact("5.4.6", Reason.ROUTING_LOOP),
    NoSuchDomain: _Fact("5.1.2", Reason.BAD_DOMAIN),
}


class DirectTransport:
    """Delivers to the MX hosts of each domain; their 250 is the delivery."""

    def __init__(
        self,
        routes: Routes,
        *,
        ehlo_name: str,
        port: int = 25,
        limits: Limits = DIRECT_LIMITS,
        timeouts: Timeouts = RFC_5321,
    ) -> None:
        self._routes = routes
        self._ehlo_name = ehlo_name
        self._port = port
        self._lanes = Destinations(limits)
        self._opener = SessionFactory(timeouts)

    @property
    def trouble(self) -> str | None:
        """There is no one host whose trouble stops everything."""
        return None

    async def deliver(self, consignment: DeliveryRequest, *, lease: Lease) -> DeliveryOutcome:
        """Hand one message over. Every failure is an outcome; only LeaseLost is raised."""
        domain = consignment.envelope.recipient.rpartition("@")[2]
        attempt = Attempt(consignment, lease=lease, opener=self._opener, on_acceptance=DeliveryStatus.DELIVERED)
        try:
            route = await self._routes.find(domain)
            lane = self._lanes.lane(route.key)
            async with lane.place():
                return await attempt.run(lane, self._servers(route))
        except NoRoute as fact:
            return _no_route(fact, consignment.history)
        except DnsTrouble as trouble:
            return deferred(Reason.DNS, f"The DNS does not answer: {trouble}")
        except TargetRefused:
            return deferred(Reason.TARGET_REFUSED, f"The mail hosts of {domain} have no address that we may call.")
        except DestinationBusy as busy:
            return busy.outcome

    def close(self) -> None:
        """Close the kept connections."""
        self._lanes.close()

    async def _servers(self, route: Route) -> AsyncIterator[Server]:
        """Find the addresses of one host after another. Raises the gravest trouble when there are none at all."""
        trouble: Exception | None = None
        found = 0
        for host in sorted(route.shuffled(), key=self._opener.is_down):
            try:
                addresses = await self._routes.addresses(host)
            except (DnsTrouble, NoRoute, TargetRefused) as error:
                trouble = _graver(trouble, error)
                continue
            for address in addresses[: MOST_ADDRESSES - found]:
                found += 1
                yield Server(str(address), self._port, host, self._ehlo_name)
        if trouble and not found:
            raise trouble


def _graver(known: Exception | None, new: Exception) -> Exception:
    """Keep the trouble that promises most: what may pass, then what we refuse, then what is not there."""
    return new if known is None or _rank(new) < _rank(known) else known


def _rank(trouble: Exception) -> int:
    return next(rank for rank, kind in enumerate((DnsTrouble, TargetRefused, NoRoute)) if isinstance(trouble, kind))


def _no_route(fact: NoRoute, history: History) -> DeliveryOutcome:
    """Bounce, or ask again where the domain may only have vanished for a moment."""
    found = FACTS[type(fact)]
    if isinstance(fact, NoSuchDomain) and not _is_confirmed(history):
        return deferred(Reason.BAD_DOMAIN_UNCONFIRMED, f"{found.code} {fact}")
    reply = Reply(0, safe_text(f"{found.code} {fact}"))
    return DeliveryOutcome(
        DeliveryStatus.BOUNCED, reply, found.reason, is_recipient_fault=found.reason in RECIPIENT_FAULTS
    )


def _is_confirmed(history: History) -> bool:
    return history.reason == Reason.BAD_DOMAIN_UNCONFIRMED and history.age >= CONFIRM_AFTER
