"""Hand mail to an SMTP server, over connections that are kept and used again."""

import asyncio
from collections import deque
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any

import aiosmtplib
from aiosmtplib.errors import SMTPResponseException

from delivery.replies import Outcome, Reply, Verdict, safe_text

# RFC 5321, section 4.5.3.2. A minute to connect and greet; the final dot may take ten.
CONNECT_SECONDS = 60.0
COMMAND_SECONDS = 300.0
DATA_SECONDS = 600.0
SESSION_SECONDS = 1200.0
KEEP_SECONDS = 30.0

TEMPORARY = range(400, 500)
PERMANENT = range(500, 600)


class LeaseLost(Exception):
    """Raised before the body is sent when the claim may belong to another worker by now."""


@dataclass(frozen=True)
class Destination:
    """A server to connect to, and the name that we greet it with."""

    host: str
    port: int
    ehlo_name: str


@dataclass(frozen=True)
class Envelope:
    sender: str
    recipient: str


class Session:
    """One connection; good for one message after another until it breaks."""

    def __init__(self, destination: Destination) -> None:
        self._client = aiosmtplib.SMTP(
            hostname=destination.host,
            port=destination.port,
            local_hostname=destination.ehlo_name,
            timeout=CONNECT_SECONDS,
            use_tls=False,
            start_tls=False,
        )
        self.used_at = 0.0

    @property
    def is_usable(self) -> bool:
        return self._client.is_connected and asyncio.get_running_loop().time() - self.used_at < KEEP_SECONDS

    async def open(self) -> None:
        """Connect and greet. Raises aiosmtplib's errors, OSError and TimeoutError."""
        await self._client.connect()
        await self._client.ehlo()

    async def send(self, envelope: Envelope, message: bytes, *, lease: Any) -> Reply:
        """Send one message and return the reply to its final dot.

        Raises SMTPResponseException for a refusal, aiosmtplib's other errors for a broken connection,
        LeaseLost before the body.
        """
        await self._client.mail(envelope.sender, timeout=COMMAND_SECONDS)
        await self._client.rcpt(envelope.recipient, timeout=COMMAND_SECONDS)
        if not lease.is_held():
            raise LeaseLost
        response = await self._client.data(message, timeout=DATA_SECONDS)
        self.used_at = asyncio.get_running_loop().time()
        return Reply(response.code, safe_text(response.message))

    async def reset(self) -> None:
        """Make the connection good for the next message after a refusal."""
        await self._client.rset(timeout=COMMAND_SECONDS)
        self.used_at = asyncio.get_running_loop().time()

    def close(self) -> None:
        self._client.close()


class SmtpTransport:
    """Delivers to one server. on_acceptance says what its 250 means: sent, or delivered too."""

    def __init__(self, destination: Destination, *, on_acceptance: Verdict) -> None:
        self._destination = destination
        self._on_acceptance = on_acceptance
        self._idle: deque[Session] = deque()

    async def deliver(self, envelope: Envelope, message: bytes, *, lease: Any) -> Outcome:
        """Hand one message over. Every failure is an outcome; only LeaseLost is raised."""
        try:
            async with asyncio.timeout(SESSION_SECONDS):
                session = await self._session()
                return await self._send(session, envelope, message, lease)
        except (aiosmtplib.SMTPException, OSError, TimeoutError) as error:
            return Outcome(Verdict.DEFERRED, Reply(0, safe_text(f"No connection: {error}")), reason="connection")

    async def _session(self) -> Session:
        while self._idle:
            session = self._idle.pop()
            if session.is_usable:
                return session
            session.close()
        session = Session(self._destination)
        await session.open()
        return session

    async def _send(self, session: Session, envelope: Envelope, message: bytes, lease: Any) -> Outcome:
        try:
            reply = await session.send(envelope, message, lease=lease)
        except SMTPResponseException as error:
            await self._keep(session, after=session.reset())
            return _refusal(Reply(error.code, safe_text(error.message)))
        except BaseException:
            session.close()
            raise
        self._idle.append(session)
        return Outcome(self._on_acceptance, reply)

    async def _keep(self, session: Session, *, after: Awaitable[None]) -> None:
        try:
            await after
        except (aiosmtplib.SMTPException, OSError):
            session.close()
        else:
            self._idle.append(session)


def _refusal(reply: Reply) -> Outcome:
    if reply.code in PERMANENT:
        return Outcome(Verdict.BOUNCED, reply, reason="rejected")
    return Outcome(Verdict.DEFERRED, reply, reason="temporary" if reply.code in TEMPORARY else "protocol")
