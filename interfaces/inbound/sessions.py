"""One session of the inbound server: reports to return paths, and email to the recipients of workspaces.

A transaction has one kind of recipient. The size of a message is limited by the kind, after RCPT.
"""

# ruff: noqa: N802 - the names of aiosmtpd
import asyncio
import re
import ssl
from typing import Any

from aiosmtpd.smtp import Envelope, Session
from django.conf import settings

from core.lib.mail.receiving_memory import ReceivingMemory
from core.lib.mail.smtp_data import DataRefusal, read_message
from core.lib.mail.smtp_limiter import ConnectionLimiter
from core.lib.mail.smtp_limits import SessionLimits
from core.lib.mail.smtp_server import NOT_SUPPORTED, TOO_LARGE, LimitedSMTP
from receiving.arrival import replies
from receiving.arrival.routing import RoutedRecipient

NEEDS_RECIPIENT = "503 5.5.1 Send RCPT first"
SYNTAX_OF_DATA = "501 5.5.4 Syntax: DATA"
START = "354 End the message with <CRLF>.<CRLF>"
LINE_TOO_LONG = "500 5.5.2 Line too long"
SIZE = re.compile(r"SIZE=(\d{1,20})")
# The owner of the memory for reports.
REPORTS = "reports"
REPORT_BYTES = 1024 * 1024
REFUSALS = {
    DataRefusal.TOO_LARGE: TOO_LARGE,
    DataRefusal.LINE_TOO_LONG: LINE_TOO_LONG,
    DataRefusal.NO_MEMORY: replies.NO_MEMORY,
}
# Messages of any number of lines are read; the report reader has its own bounds.
MANY_LINES = 10**9


class InboundEnvelope(Envelope):
    """An envelope.

    announced: the bytes in SIZE.
    report_bytes: the limit of a report.
    source: the bytes of the message, without the framing of SMTP.
    """

    def __init__(self) -> None:
        super().__init__()
        self.announced = 0
        self.report_bytes = REPORT_BYTES
        self.recipients: list[RoutedRecipient] = []
        self.source = bytearray()

    @property
    def is_report(self) -> bool:
        return bool(self.rcpt_tos) and not self.recipients

    @property
    def max_bytes(self) -> int:
        return min((recipient.max_bytes for recipient in self.recipients), default=self.report_bytes)

    @property
    def owner(self) -> str:
        """Whose share of the memory the message uses."""
        return self.recipients[0].workspace.id if self.recipients else REPORTS


class InboundSession(Session):
    """The state of a session. workspaces: those whose share of the sessions it uses. is_listed: on a block list."""

    def __init__(self, loop: Any) -> None:
        super().__init__(loop)
        self.workspaces: set[str] = set()
        self.is_listed: bool | None = None


def session_limits() -> SessionLimits:
    """Return the limits of sessions, whose largest messages are those to workspaces."""
    return SessionLimits(message_bytes=settings.RECEIVING_MAX_BYTES, lines=MANY_LINES)


def receiving_memory() -> ReceivingMemory:
    """Return the memory for the messages of all sessions."""
    return ReceivingMemory.of(settings.RECEIVING_MEMORY_BYTES)


class InboundSMTP(LimitedSMTP):
    """A session without authentication."""

    def __init__(
        self, handler: Any, *, limiter: ConnectionLimiter, memory: ReceivingMemory, tls_context: ssl.SSLContext | None
    ) -> None:
        super().__init__(
            handler,
            limiter=limiter,
            memory=memory,
            hostname=settings.EHLO_NAME,
            ident="Postrider",
            tls_context=tls_context,
            auth_exclude_mechanism=("LOGIN", "PLAIN"),
        )

    # Methods, not properties: aiosmtpd reads all attributes before they are set.
    def current_envelope(self) -> InboundEnvelope:
        assert isinstance(self.envelope, InboundEnvelope)
        return self.envelope

    def current_session(self) -> InboundSession:
        assert isinstance(self.session, InboundSession)
        return self.session

    def tls_version(self) -> str:
        """Return the version of TLS; empty without it."""
        encryption = self.transport.get_extra_info("ssl_object") if self.transport else None
        return str(encryption.version()) if encryption else ""

    def assign(self, workspace_id: str) -> bool:
        """Count the session for a workspace; return False if its share is used up."""
        session = self.current_session()
        if workspace_id in session.workspaces:
            return True
        if not self._limiter.assign(self, workspace_id):
            return False
        session.workspaces.add(workspace_id)
        return True

    async def smtp_AUTH(self, arg: str | None) -> None:
        await self.push(NOT_SUPPORTED)

    async def smtp_DATA(self, arg: str | None) -> None:
        if await self.check_helo_needed():
            return
        envelope = self.current_envelope()
        if not envelope.rcpt_tos:
            await self.push(NEEDS_RECIPIENT)
        elif arg:
            await self.push(SYNTAX_OF_DATA)
        elif not self.take_memory(envelope.owner, envelope.announced):
            await self.push(replies.NO_MEMORY)
            self.envelope = self._create_envelope()
        else:
            await self._receive(envelope)

    async def _receive(self, envelope: InboundEnvelope) -> None:
        content = bytearray()
        storing: asyncio.Future[str] | None = None
        try:
            await self.push(START)
            self._reset_budget()
            self._start_arrival_check()
            reply = await self._read(envelope, content) or ""
            self._stop_arrival_check()
            if not reply:
                envelope.source, content = content, bytearray()
                # A thread stores the message, also if the client ends its session in the meantime.
                storing = asyncio.ensure_future(self._call_handler_hook("DATA"))
                reply = await asyncio.shield(storing)
        finally:
            self._stop_arrival_check()
            # The frames of a session that ended keep their variables until the garbage collector runs.
            content.clear()
            self._forget_when_done(envelope, storing)
            self.envelope = self._create_envelope()
            self._reset_budget()
        await self.push(reply)

    def _forget_when_done(self, envelope: InboundEnvelope, storing: "asyncio.Future[str] | None") -> None:
        """Release the memory of a message; of one that is being stored, afterwards."""
        if storing is None or storing.done():
            self._forget(envelope)
        else:
            storing.add_done_callback(lambda _: self._forget(envelope))

    def _forget(self, envelope: InboundEnvelope) -> None:
        envelope.source = bytearray()
        self.release_memory()

    async def _read(self, envelope: InboundEnvelope, content: bytearray) -> str | None:
        received = 0

        def take(count: int) -> bool:
            nonlocal received
            received += count
            # What was announced is counted already.
            missing = received - self.taken_bytes
            return missing <= 0 or self.take_memory(envelope.owner, missing)

        refusal = await read_message(
            self._reader,
            content,
            max_bytes=min(envelope.max_bytes, self._limits.message_bytes),
            take=take,
            max_line_bytes=self._limits.line_bytes if envelope.is_report else None,
        )
        return REFUSALS[refusal] if refusal else None

    def _create_session(self) -> InboundSession:
        return InboundSession(self.loop)

    def _create_envelope(self) -> InboundEnvelope:
        return InboundEnvelope()


def announced_size(options: list[str]) -> int:
    """Return the size in the parameters of MAIL; 0 without it."""
    return next((int(match[1]) for option in options if (match := SIZE.fullmatch(option))), 0)
