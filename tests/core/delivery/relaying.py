"""Deliveries to a scripted server."""

import asyncio
import functools
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, TypeVar

from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus
from core.delivery.message.compose import OutgoingMessage
from core.delivery.transports.destinations import DestinationLimits
from core.delivery.transports.relay import RelayTransport
from core.delivery.transports.smtp.mail_host import Timeouts
from core.delivery.transports.smtp.smtp_url import RelayUrl
from core.delivery.transports.smtp.tls import TlsMode
from tests.core.delivery.scripted import Script, ScriptedServer, StubLease, outgoing_message

T = TypeVar("T")

SHORT = Timeouts(
    connect=2.0, banner=0.15, ehlo=0.15, tls=2.0, login=0.15, envelope=0.15, data=0.15, block=0.15, dot=0.15, total=5.0
)
MESSAGE = outgoing_message()


class FakeClock:
    def __init__(self, now: float = 1000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


class Bytes(OutgoingMessage):
    """An outgoing message with the given bytes."""

    def __init__(self, data: bytes) -> None:
        super().__init__(**vars(MESSAGE))
        object.__setattr__(self, "data", data)

    def to_bytes(self) -> bytes:
        data: bytes = self.data  # type: ignore[attr-defined]
        return data


def run(work: Coroutine[Any, Any, T]) -> T:
    async def limited() -> T:
        async with asyncio.timeout(20):
            return await work

    return asyncio.run(limited())


def awaited(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test that is a coroutine."""

    @functools.wraps(test)
    def run_test(*instance: Any, **fixtures: Any) -> None:
        run(test(*instance, **fixtures))

    return run_test


def relay(server: ScriptedServer, **options: Any) -> RelayTransport:
    """Return a transport to the server. options: those of RelayUrl and RelayTransport."""
    url = RelayUrl("127.0.0.1", server.port, options.pop("tls", TlsMode.NONE), options.pop("login", None))
    url = replace(url, host=options.pop("host", url.host))
    given = {
        "ehlo_name": "sender.example",
        "timeouts": SHORT,
        "limits": DestinationLimits(),
        "on_acceptance": DeliveryStatus.SENT,
    }
    return RelayTransport(url, **{**given, **options})


def deliver(script: Script | None = None, message: OutgoingMessage = MESSAGE, **options: Any) -> DeliveryOutcome:
    """Deliver one message to a server with the given script."""

    async def work() -> DeliveryOutcome:
        async with ScriptedServer(script, extensions=options.pop("extensions", ("PIPELINING",))) as server:
            transport = relay(server, **options)
            try:
                return await transport.deliver(message, lease=StubLease())
            finally:
                transport.close()

    return run(work())
