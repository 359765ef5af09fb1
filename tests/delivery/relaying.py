"""Deliveries to a scripted server, for the tests of what is in between."""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, TypeVar

from delivery.bounces.replies import DeliveryOutcome, DeliveryStatus
from delivery.message.delivery_request import DeliveryRequest, Envelope
from delivery.transports.destinations import Limits
from delivery.transports.relay import RelayTransport
from delivery.transports.smtp.server import Timeouts
from delivery.transports.smtp.smtp_url import RelayUrl
from delivery.transports.smtp.tls import Tls
from tests.delivery.scripted import HeldLease, Script, ScriptedServer, letter

T = TypeVar("T")

SHORT = Timeouts(
    connect=2.0, banner=0.15, ehlo=0.15, tls=2.0, login=0.15, envelope=0.15, data=0.15, block=0.15, dot=0.15, whole=5.0
)
ENVELOPE = Envelope("bounce+1@example.org", "ada@example.com")
PARCEL = DeliveryRequest(ENVELOPE, letter())


class Bytes(DeliveryRequest):
    """A consignment of the bytes it is given."""

    def __init__(self, data: bytes, envelope: Envelope = ENVELOPE) -> None:
        super().__init__(envelope, letter())
        object.__setattr__(self, "data", data)

    def message(self) -> bytes:
        data: bytes = self.data  # type: ignore[attr-defined]
        return data


def run(work: Coroutine[Any, Any, T]) -> T:
    async def limited() -> T:
        async with asyncio.timeout(20):
            return await work

    return asyncio.run(limited())


def relay(server: ScriptedServer, **options: Any) -> RelayTransport:
    """Return a transport to the server; the options of RelayUrl and of RelayTransport together."""
    url = RelayUrl("127.0.0.1", server.port, options.pop("tls", Tls.NONE), options.pop("login", None))
    url = replace(url, host=options.pop("host", url.host))
    given = {"ehlo_name": "sender.example", "timeouts": SHORT, "limits": Limits(), "on_acceptance": DeliveryStatus.SENT}
    return RelayTransport(url, **{**given, **options})


def deliver(script: Script | None = None, consignment: DeliveryRequest = PARCEL, **options: Any) -> DeliveryOutcome:
    """Deliver one message to a server with this script."""

    async def work() -> DeliveryOutcome:
        async with ScriptedServer(script, extensions=options.pop("extensions", ("PIPELINING",))) as server:
            transport = relay(server, **options)
            try:
                return await transport.deliver(consignment, lease=HeldLease())
            finally:
                transport.close()

    return run(work())
