"""One SMTP session: authentication before mail, no data before its reply, and bounded memory for messages."""

# ruff: noqa: N802 - the names of aiosmtpd
import asyncio
import re
import ssl
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Any

from aiosmtpd.smtp import Envelope, Session
from django.conf import settings

from core.lib.email_addresses import Address as MailAddress
from core.lib.mail.receiving_memory import ReceivingMemory
from core.lib.mail.smtp_data import DataRefusal, read_message
from core.lib.mail.smtp_limiter import ConnectionLimiter
from core.lib.mail.smtp_limits import LimitedSession, SessionLimits
from core.lib.mail.smtp_server import TLS_IN_USE, LimitedSMTP
from core.lib.network.address_guard import Address, unwrap
from core.lib.network.client_address import is_trusted_proxy
from core.workspaces.models import ApiKey
from interfaces.submission.deliver_by import DeliverByRefused, take_deliver_by
from interfaces.submission.metrics import count_reply
from interfaces.submission.replies import BUSY, NEEDS_RECIPIENT, NEEDS_SIGN_IN
from interfaces.submission.sasl import encode_challenge, read_line

# Attachments of 10 MiB in base64, and two texts of 1 MiB.
MESSAGE_BYTES = 16 * 1024 * 1024
# A session without a valid key ends soon; one with a key is kept, so that programs can send at any time.
LIMITS = SessionLimits(
    message_bytes=MESSAGE_BYTES,
    lines=400_000,
    session_seconds=60.0,
    rcpt_seconds=60.0,
    messages=10_000,
    other_commands=1_000,
)
SIGNED_IN_SECONDS = 3_600.0
SIGNED_IN_REFUSALS = 1_000
COUNTED = frozenset({"AUTH", "MAIL", "RCPT", "DATA"})
TOO_EARLY = "503 5.5.0 Wait for the reply before sending more"
TOO_LARGE = f"552 5.3.4 A message must not exceed {MESSAGE_BYTES:,} bytes"
LINE_TOO_LONG = f"554 5.6.0 A line must not exceed {LIMITS.line_bytes:,} bytes"
REFUSALS = {
    DataRefusal.TOO_LARGE: TOO_LARGE,
    DataRefusal.LINE_TOO_LONG: LINE_TOO_LONG,
    DataRefusal.NO_MEMORY: BUSY,
}
# RFC 4954, section 5: the sender's identity on another server, which has no effect here.
AUTH_PARAMETER = re.compile(r"(?<!\s)\s+AUTH=\S*", re.IGNORECASE)


class SubmissionSession(Session):
    """The state of a session; key: the API key that the client signed in with."""

    key: str = ""


class SubmissionEnvelope(Envelope):
    """The envelope of a message, with the session's key as it was read when the message began."""

    api_key: ApiKey
    source: bytearray
    # That of MAIL.
    deliver_within: int | None = None

    def __init__(self) -> None:
        super().__init__()
        self.recipients: list[MailAddress] = []


class SubmissionSMTP(LimitedSMTP):
    """A session of a program that sends email.

    handler: the SubmissionHandler, which imports this class.
    has_tls: the connection is encrypted from its start.
    """

    # MAIL is longer by the parameters of RFC 4954, section 3, and of RFC 2852, section 2; a password in AUTH may be as
    # long as in a response.
    long_commands: Mapping[str, int] = {
        "MAIL": LimitedSMTP.long_commands["MAIL"] + 500 + 17,
        "AUTH": LIMITS.line_bytes,
    }

    def __init__(
        self,
        handler: Any,
        *,
        limiter: ConnectionLimiter,
        memory: ReceivingMemory,
        tls_context: ssl.SSLContext | None,
        has_tls: bool,
    ) -> None:
        super().__init__(
            handler,
            limiter=limiter,
            memory=memory,
            hostname=settings.EHLO_NAME,
            ident="Postrider ESMTP",
            tls_context=None if has_tls else tls_context,
            auth_required=True,
        )
        self._has_tls = has_tls
        # That of the last MAIL, which its hook takes over.
        self.deliver_within: int | None = None
        # The connection until now, if it has TLS from its start.
        self.handshake: LimitedSession | None = None

    # Methods, not properties: aiosmtpd reads all attributes before they are set.
    def client_address(self) -> Address | None:
        peer = self.session.peer if self.session else None
        return unwrap(ip_address(peer[0])) if peer else None

    def current_envelope(self) -> SubmissionEnvelope:
        assert isinstance(self.envelope, SubmissionEnvelope)
        return self.envelope

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        if self.handshake:
            self._limiter.close(self.handshake)
        super().connection_made(transport)
        self._auth_require_tls = not (self._has_tls or self._may_sign_in_without_tls())

    def keep(self, workspace_id: str) -> bool:
        """Let the session of a signed-in client continue, as one with a recipient does.

        Returns False if the workspace has no room for another session.
        """
        assert self._deadline is not None
        if not self._limiter.assign(self, workspace_id):
            return False
        self.establish()
        self.refusals, self.max_refusals = 0, SIGNED_IN_REFUSALS
        self._deadline.cancel()
        self._deadline = self.loop.call_later(SIGNED_IN_SECONDS, self.end, "421 4.4.2 Session time limit reached")
        return True

    async def check_auth_needed(self, caller_method: str) -> bool:
        assert self.session is not None
        if self.session.authenticated:
            return False
        await self.push(NEEDS_SIGN_IN)
        return True

    async def smtp_EHLO(self, hostname: str) -> None:
        if not self._has_early_data():
            await super().smtp_EHLO(hostname)

    async def smtp_STARTTLS(self, arg: str | None) -> None:
        if self._has_tls:
            await self.push(TLS_IN_USE)
        elif not self._has_early_data():
            await super().smtp_STARTTLS(arg)

    async def smtp_AUTH(self, arg: str | None) -> None:
        # Names of mechanisms are case-insensitive (RFC 4422, section 3.1); aiosmtpd compares them exactly.
        mechanism, space, initial = (arg or "").partition(" ")
        await super().smtp_AUTH(f"{mechanism.upper()}{space}{initial}")

    async def ask(self, challenge: str) -> bytes:
        """Send a challenge of AUTH; return the line of the client's response. Raises ResponseTooLong."""
        await self.push(encode_challenge(challenge))
        return await read_line(self._reader)

    async def smtp_MAIL(self, arg: str | None) -> None:
        arg, self.deliver_within = AUTH_PARAMETER.sub("", arg) if arg else arg, None
        if arg and self.session and self.session.extended_smtp:
            try:
                arg, self.deliver_within = take_deliver_by(arg)
            except DeliverByRefused as refused:
                await self.push(refused.reply)
                return
        await super().smtp_MAIL(arg)

    async def smtp_DATA(self, arg: str | None) -> None:
        if await self.check_helo_needed() or await self.check_auth_needed("DATA"):
            return
        if not self.current_envelope().recipients:
            await self.push(NEEDS_RECIPIENT)
            return
        if arg:
            await self.push("501 5.5.4 Syntax: DATA")
            return
        if self._has_early_data():
            return
        await self.push("354 End the message with <CRLF>.<CRLF>")
        await self._receive()

    async def _receive(self) -> None:
        content = bytearray()
        workspace_id = self.current_envelope().api_key.workspace_id
        self._reset_budget()
        self._start_arrival_check()
        try:
            refusal = await self._read_message(content, workspace_id)
            self._stop_arrival_check()
            if refusal is None:
                self.current_envelope().source = content
                refusal = await self._call_handler_hook("DATA")
        except BaseException:
            # The frames of a session that ended keep their variables until the garbage collector runs.
            content.clear()
            raise
        finally:
            self.release_memory()
            self.envelope = self._create_envelope()
            self._reset_budget()
        await self.push(refusal)

    async def _read_message(self, content: bytearray, workspace_id: str) -> str | None:
        """Append a message; return a refusal or None. A session without memory for it ends."""

        def take(count: int) -> bool:
            has_room = self.take_memory(workspace_id, count)
            if not has_room:
                self.end(BUSY)
            return has_room

        line_bytes = self._limits.line_bytes
        refusal = await read_message(
            self._reader, content, max_bytes=MESSAGE_BYTES, take=take, max_line_bytes=line_bytes
        )
        return REFUSALS[refusal] if refusal else None

    async def _call_handler_hook(self, command: str, *args: Any) -> Any:
        reply = await super()._call_handler_hook(command, *args)
        if command in COUNTED and isinstance(reply, str):
            count_reply(command, reply)
        return reply

    def _create_session(self) -> SubmissionSession:
        return SubmissionSession(self.loop)

    def _create_envelope(self) -> SubmissionEnvelope:
        return SubmissionEnvelope()

    def _has_early_data(self) -> bool:
        """End the session if the client sent more before the reply to a command that must be the last of its group.

        Such commands are the usual means to inject others (RFC 2920, section 3.1).
        """
        has_more = self._has_more_commands()
        if has_more:
            self.end(TOO_EARLY)
        return has_more

    def _may_sign_in_without_tls(self) -> bool:
        client = self.client_address()
        is_near = client is not None and (client.is_loopback or is_trusted_proxy(str(client)))
        return bool(settings.SUBMISSION_ALLOW_PLAINTEXT) and is_near
