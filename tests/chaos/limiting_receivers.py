"""Receivers of a chaos run: mail hosts with limits, which answer with slow signals and suspensions."""

import asyncio
import bisect
import json
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.audit.ledger import Ledger, ReceivedMessage
from tests.core.lib.nameserver import NameServer
from tests.event_loops import close_loop
from tests.stack.stack import free_port

TOO_FAST = b"421 4.7.28 Gmail has detected an unusual rate of unsolicited mail from your IP address\r\n"
TOO_MANY = b"421 4.7.0 Too many concurrent connections from this address\r\n"
DISTRUST = b"421 4.7.0 [TSS04] Messages temporarily deferred due to unexpected volume or user complaints\r\n"
WORKS, SLOWS, DISTRUSTS = "works", "slows", "distrusts"
# From the dot to the reply.
LATENCY_SECONDS = 0.05
BURST_SECONDS = 3.0
WINDOW_SECONDS = 20.0


@dataclass
class LimitingReceiver:
    """A mail host for one domain.

    connections, per_minute: its limits; None for none. They are in RECEIVERS_FILE if `is_known`.
    mode: of WORKS, SLOWS (no more than slow_rate messages a minute), DISTRUSTS (none).
    attempts: the times of all messages that were offered to it.
    """

    domain: str
    host: str
    ledger: Ledger
    connections: int | None = None
    per_minute: float | None = None
    is_known: bool = False
    mode: str = WORKS
    slow_rate: float = 60.0
    counts: Counter[str] = field(default_factory=Counter)
    attempts: list[float] = field(default_factory=list)
    open: int = 0
    most_open: int = 0
    _tokens: float = 1.0
    _at: float = field(default_factory=time.monotonic)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            if self.connections and not self.is_known and self.open > self.connections:
                self.counts["refused connections"] += 1
                writer.write(TOO_MANY)
                return
            await self._converse(reader, writer)
        except (OSError, EOFError):
            pass
        finally:
            self.open -= 1
            with suppress(AttributeError):
                writer.close()

    def most_attempts(self) -> int:
        """Return the most messages that were offered within WINDOW_SECONDS."""
        starts = self.attempts
        return max((bisect.bisect(starts, at + WINDOW_SECONDS) - place for place, at in enumerate(starts)), default=0)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Receive messages, until one is refused."""
        sender, recipient = "", ""
        writer.write(b"220 mx ESMTP\r\n")
        while line := await reader.readline():
            verb = line[:4].upper()
            if verb == b"EHLO":
                writer.write(b"250-mx\r\n250 PIPELINING\r\n")
            elif verb in (b"MAIL", b"RCPT"):
                address = line.partition(b"<")[2].partition(b">")[0].decode()
                sender, recipient = (address, recipient) if verb == b"MAIL" else (sender, address)
                writer.write(b"250 2.1.0 Ok\r\n")
            elif verb == b"DATA":
                writer.write(b"354 Go ahead\r\n")
                source = (await reader.readuntil(b"\r\n.\r\n")).removesuffix(b".\r\n").replace(b"\r\n..", b"\r\n.")
                await asyncio.sleep(LATENCY_SECONDS)
                if refusal := self._refusal():
                    writer.write(refusal)
                    return
                self.ledger.messages.append(ReceivedMessage.of(recipient, source, time.time(), sender))
                writer.write(b"250 2.0.0 Accepted\r\n")
            elif verb == b"QUIT":
                writer.write(b"221 2.0.0 Bye\r\n")
                return
            else:
                writer.write(b"250 2.0.0 Ok\r\n")

    def _refusal(self) -> bytes:
        """Return the reply to a message that is refused; empty for one that is accepted."""
        now = time.monotonic()
        self.attempts.append(now)
        if self.mode == DISTRUSTS:
            self.counts["distrusted"] += 1
            return DISTRUST
        rate = self.slow_rate if self.mode == SLOWS else None
        if rate:
            self._tokens = min(self._tokens + (now - self._at) * rate / 60, max(rate / 60 * BURST_SECONDS, 1.0))
            self._at = now
            if self._tokens < 1:
                self.counts["slowed"] += 1
                return TOO_FAST
            self._tokens -= 1
        self.counts["accepted"] += 1
        return b""


@contextmanager
def running_receivers(receivers: Sequence[LimitingReceiver], logs: Path) -> Iterator[dict[str, str]]:
    """Run the receivers in a thread; yield the settings of a service that delivers to them."""
    zones = {one.domain: {"MX": [f"10 mx.{one.domain}."]} for one in receivers}
    zones |= {f"mx.{one.domain}": {"A": [one.host]} for one in receivers}
    known = {one.domain: one for one in receivers if one.is_known}
    limits = {
        domain: {"connections": one.connections or 10, "perMinute": one.per_minute} for domain, one in known.items()
    }
    table = logs / "receivers.yaml"
    table.write_text(json.dumps(limits))
    port = free_port()
    with ExitStack() as stack:
        dns = stack.enter_context(NameServer(zones))
        stack.enter_context(_serving(receivers, port))
        yield {
            "DELIVERY_TRANSPORT": "direct",
            "DELIVERY_ALLOW_PRIVATE_NETWORKS": "true",
            "DIRECT_SMTP_PORT": str(port),
            "DNS_SERVERS": "{}:{}".format(*dns.address),
            "RECEIVERS_FILE": str(table),
            "SMTP_URL": "",
        }


@contextmanager
def _serving(receivers: Sequence[LimitingReceiver], port: int) -> Iterator[None]:
    loop, started = asyncio.new_event_loop(), threading.Event()

    async def run() -> None:
        servers = [
            await asyncio.start_server(one.serve, one.host, port, backlog=1000, limit=1 << 24) for one in receivers
        ]
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            for server in servers:
                server.close()

    task = loop.create_task(run())

    def work() -> None:
        with suppress(asyncio.CancelledError):
            loop.run_until_complete(task)
        close_loop(loop)

    thread = threading.Thread(target=work, name="limiting receivers")
    thread.start()
    started.wait(10)
    try:
        yield
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join(20)
