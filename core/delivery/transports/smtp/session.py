"""SMTP session (RFC 5321): connects to a host, sends one message after another, closes."""

import asyncio
import base64
import logging
import ssl
from collections.abc import Sequence
from dataclasses import dataclass

from core.delivery.bounces.classification import SmtpStage
from core.delivery.bounces.reasons import FailureReason
from core.delivery.bounces.replies import Reply, SessionTls, TlsPolicyKind, TlsResult, reply_of
from core.delivery.bounces.signals import CLOSING
from core.delivery.message.compose import OutgoingMessage
from core.delivery.transports.composing import stuff_dots
from core.delivery.transports.interface import LeaseCheck, require_valid
from core.delivery.transports.smtp.commands import mail_command, rcpt_command
from core.delivery.transports.smtp.connection import ConnectionBroken, InvalidReply, RawReply, SmtpConnection
from core.delivery.transports.smtp.errors import SmtpError, connection_error
from core.delivery.transports.smtp.login import MECHANISMS, Login
from core.delivery.transports.smtp.mail_host import RFC_5321, MailHost, Timeouts
from core.delivery.transports.smtp.tls import TlsMode, context_for, peer_chain
from core.lib.worker.failpoints import failpoint

log = logging.getLogger("postrider.delivery")

BLOCK_BYTES = 64 * 1024
# First digits of replies: the one that each command expects, and the refusals.
EXPECTED = {SmtpStage.MAIL: 2, SmtpStage.RCPT: 2, SmtpStage.DATA: 3}
REFUSALS = (4, 5)
NOTHING = 0
# RFC 8689, section 2.
REQUIRETLS = "REQUIRETLS"
# The verify_code of OpenSSL (x509_vfy.h) for a certificate that is not yet valid, or not any more, or of another host.
CERTIFICATE_RESULTS = {9: TlsResult.EXPIRED, 10: TlsResult.EXPIRED, 62: TlsResult.HOST_MISMATCH}


@dataclass(frozen=True)
class Receipt:
    """The reply to the final dot.

    dsn_requested: the host offers DSNs and was asked for one.
    tls: None for a host of the settings.
    """

    reply: Reply
    dsn_requested: bool
    tls: SessionTls | None = None


class Session:
    """One session with one host. After an SmtpError, `is_usable` says whether the session can be kept."""

    def __init__(self, connection: SmtpConnection, host: MailHost, timeouts: Timeouts) -> None:
        self._connection = connection
        self._host = host
        self._timeouts = timeouts
        self._extensions: dict[str, str] = {}
        self._needs_reset = False
        self.is_secure = host.tls is TlsMode.IMPLICIT
        self.messages = 0
        self.idle_since = 0.0

    @classmethod
    async def open(cls, host: MailHost, *, deadline: float, timeouts: Timeouts = RFC_5321) -> "Session":
        """Connect, say EHLO, start TLS and log in by the deadline (in the loop's time). Raises SmtpError."""
        connection = await _connect(host, deadline, timeouts)
        session = cls(connection, host, timeouts)
        try:
            await session._initialize()
        except BaseException:
            session.close()
            raise
        return session

    @property
    def is_usable(self) -> bool:
        return self._connection.is_idle

    @property
    def tls(self) -> SessionTls | None:
        """The TLS of the session as events show it; None for a host of the settings."""
        if self._host.policy is None:
            return None
        found = self._connection.ssl_object if self.is_secure else None
        version = found.version() if found else None
        result = self._host.failure or (TlsResult.SUCCESS if version else TlsResult.NO_STARTTLS)
        return SessionTls(version, self._host.policy, verified=bool(version) and self._host.is_verified, result=result)

    async def send(self, message: OutgoingMessage, *, composed: bytes, lease: LeaseCheck, deadline: float) -> Receipt:
        """Send one message and return the reply to its final dot. Raises SmtpError and LeaseLost."""
        self._connection.deadline = deadline
        if self._needs_reset:
            await self._reset()
        # Connecting, the greeting or RSET may have taken minutes.
        require_valid(lease)
        self._needs_reset = True
        commands = self._envelope_commands(message, len(composed))
        try:
            if "PIPELINING" in self._extensions:
                await self._send_pipelined(commands)
            else:
                await self._send_one_by_one(commands, lease)
            reply = await self._send_body(composed, lease)
        except SmtpError:
            raise
        except BaseException:
            # The host may wait for the rest of the message, in which the next one would be.
            self.close()
            raise
        self._needs_reset = False
        self.messages += 1
        return Receipt(reply, dsn_requested="DSN" in self._extensions, tls=self.tls)

    def close(self) -> None:
        """Send QUIT if the session is in a clean state, and close. May be called again."""
        self._connection.close(b"QUIT\r\n" if self._connection.is_idle and not self._needs_reset else b"")

    # Opening the session.

    async def _initialize(self) -> None:
        await self._expect(SmtpStage.BANNER, seconds=self._timeouts.banner)
        await self._send_ehlo()
        if self._host.tls not in (TlsMode.NONE, TlsMode.IMPLICIT):
            await self._start_tls()
        if self._host.login:
            await self._authenticate(self._host.login)

    async def _send_ehlo(self) -> None:
        name = self._host.ehlo_name.encode()
        try:
            raw = await self._expect(SmtpStage.EHLO, b"EHLO " + name + b"\r\n", seconds=self._timeouts.ehlo)
        except SmtpError as error:
            if error.reply.code not in range(500, 600):
                raise
            await self._send_helo(b"HELO " + name + b"\r\n", error)
            return
        words = [line.decode("ascii", "replace").upper().partition(" ") for line in raw.lines[1:]]
        self._extensions = {keyword: rest for keyword, _, rest in words}
        if not self.is_secure:
            # An attacker on the way may have written it.
            self._extensions.pop(REQUIRETLS, None)

    async def _send_helo(self, command: bytes, refusal: SmtpError) -> None:
        """Say HELO to a host that refused EHLO (section 3.2)."""
        try:
            await self._expect(SmtpStage.EHLO, command, seconds=self._timeouts.ehlo)
        except SmtpError as error:
            # The refusal of EHLO is more informative than a connection that broke after it.
            raise (error if error.reply.code else refusal) from None
        self._extensions = {}

    async def _start_tls(self) -> None:
        is_mandatory = self._host.tls.is_mandatory
        if "STARTTLS" not in self._extensions:
            if is_mandatory:
                raise self._tls_failure("The host offers no TLS.", TlsResult.NO_STARTTLS)
            return
        try:
            await self._expect(SmtpStage.STARTTLS, b"STARTTLS\r\n", seconds=self._timeouts.tls)
        except SmtpError as error:
            # A host that refuses its own STARTTLS may still be used in plaintext, as one that offers no TLS.
            if not error.reply.code or error.reply.code == CLOSING:
                raise
            if is_mandatory and self._host.policy not in (None, TlsPolicyKind.NONE):
                text = f"The host refused STARTTLS: {error.reply.code} {error.reply.text}."
                raise self._tls_failure(text, TlsResult.NO_STARTTLS) from error
            if is_mandatory:
                raise
            return
        await self._handshake()
        # RFC 3207, section 4.2: discard the extensions that were announced in plaintext.
        await self._send_ehlo()

    async def _handshake(self) -> None:
        context = self._host.context or context_for(self._host.tls)
        try:
            await self._connection.start_tls(context, name=self._host.tls_name, seconds=self._timeouts.tls)
        except InvalidReply as error:
            raise connection_error(SmtpStage.STARTTLS, str(error), FailureReason.PROTOCOL) from error
        except (OSError, ConnectionBroken) as error:
            self._connection.close()
            text = f"TLS with the host failed: {error}"
            result = _result_of_handshake(error)
            raise self._tls_failure(f"{text}." if self._host.tls.is_mandatory else text, result) from error
        self._verify_dane()
        self.is_secure = True

    def _verify_dane(self) -> None:
        """Compare the certificate of the host with its DANE records, if there are usable ones."""
        dane = self._host.dane
        if self._host.tls is not TlsMode.DANE or dane is None or not dane.records:
            return
        found = self._connection.ssl_object
        if not found or not dane.verifies(peer_chain(found), names=self._host.names):
            self._connection.close()
            raise self._tls_failure("The certificate of the host is another one.", TlsResult.TLSA_MISMATCH)

    def _tls_failure(self, text: str, result: TlsResult) -> SmtpError:
        """Return the error of a host without the TLS that it needs; the text names who requires it."""
        text = f"{text} {self._host.requirement}" if self._host.tls.is_mandatory else text
        policy = self._host.policy
        tls = None if policy is None else SessionTls(version=None, policy=policy, verified=False, result=result)
        return connection_error(SmtpStage.STARTTLS, text, FailureReason.TLS, tls=tls)

    async def _authenticate(self, login: Login) -> None:
        if not self.is_secure:
            raise connection_error(
                SmtpStage.AUTH, "The password is not sent over an unencrypted connection.", FailureReason.TLS
            )
        offered = self._extensions.get("AUTH", "").split()
        mechanism = next((name for name in MECHANISMS if name in offered), None)
        if not mechanism:
            text = "The host offers no supported login mechanism (PLAIN, LOGIN, CRAM-MD5)."
            raise connection_error(SmtpStage.AUTH, text, FailureReason.LOGIN_REFUSED)
        command = f"AUTH {mechanism}\r\n".encode()
        for respond in MECHANISMS[mechanism]:
            challenge = await self._challenge(command)
            command = base64.b64encode(respond(login, challenge)) + b"\r\n"
        await self._expect(SmtpStage.AUTH, command, seconds=self._timeouts.login)

    async def _challenge(self, command: bytes) -> bytes:
        raw = await self._expect(SmtpStage.AUTH, command, expected=3, seconds=self._timeouts.login)
        try:
            return base64.b64decode(raw.lines[0])
        except ValueError:
            # Some hosts ask for the user name and the password in plain text instead of base64.
            return b""

    # Sending a message.

    async def _reset(self) -> None:
        """Reset the host's state after a refused message; close the connection if the host refuses."""
        try:
            await self._expect(SmtpStage.MAIL, b"RSET\r\n", seconds=self._timeouts.envelope)
        except SmtpError as error:
            self._connection.close()
            raise connection_error(SmtpStage.MAIL, f"The host refused RSET: {error}") from error

    def _envelope_commands(self, message: OutgoingMessage, size: int) -> list[tuple[SmtpStage, bytes]]:
        self._check_extensions(message, size)
        return [
            (SmtpStage.MAIL, mail_command(message, size=size, extensions=self._extensions)),
            (SmtpStage.RCPT, rcpt_command(message, notify=self._host.notify, extensions=self._extensions)),
            (SmtpStage.DATA, b"DATA\r\n"),
        ]

    def _check_extensions(self, message: OutgoingMessage, size: int) -> None:
        limit = self._extensions.get("SIZE", "")
        if limit.isdigit() and 0 < int(limit) < size:
            text = f"5.3.4 The message has {size} bytes; the host accepts at most {limit}."
            raise SmtpError(SmtpStage.MAIL, Reply(552, text))
        if not message.recipient.isascii() and "SMTPUTF8" not in self._extensions:
            raise SmtpError(
                SmtpStage.MAIL, Reply(550, "5.6.7 The address requires SMTPUTF8, which the host does not offer.")
            )

    async def _send_one_by_one(self, commands: Sequence[tuple[SmtpStage, bytes]], lease: LeaseCheck) -> None:
        for stage, command in commands:
            require_valid(lease)
            await self._expect(stage, command, expected=EXPECTED[stage], seconds=self._timeout(stage))

    async def _send_pipelined(self, commands: Sequence[tuple[SmtpStage, bytes]]) -> None:
        """Send all commands in one write (RFC 2920); raise the first refusal."""
        self._write(SmtpStage.MAIL, b"".join(command for _, command in commands))
        errors = [await self._read_refusal(stage) for stage, _ in commands]
        first = next(filter(None, errors), None)
        if not first:
            return
        if not errors[-1]:
            # The host accepted DATA although it refused the sender or recipient, and now waits for a body.
            self._connection.close()
        raise first

    async def _read_refusal(self, stage: SmtpStage) -> SmtpError | None:
        try:
            await self._expect(stage, expected=EXPECTED[stage], seconds=self._timeout(stage))
        except SmtpError as error:
            return error
        return None

    def _timeout(self, stage: SmtpStage) -> float:
        return self._timeouts.data if stage is SmtpStage.DATA else self._timeouts.envelope

    async def _send_body(self, composed: bytes, lease: LeaseCheck) -> Reply:
        data = await stuff_dots(composed)
        *blocks, last = [data[start : start + BLOCK_BYTES] for start in range(0, len(data), BLOCK_BYTES)]
        for block in blocks:
            await self._write_block(block)
        require_valid(lease)
        failpoint("delivery.before_dot")
        self._write(SmtpStage.DATA, last)
        try:
            failpoint("delivery.after_dot")
            raw = await self._expect(SmtpStage.DOT, seconds=self._timeouts.dot)
            return reply_of(raw.code, raw.lines)
        except SmtpError:
            raise
        except Exception as error:
            # A bug in Postrider; the host may have accepted the message nevertheless.
            log.exception("session failed after the final dot")
            self._connection.close()
            raise connection_error(SmtpStage.DOT, f"Internal error: {type(error).__name__}.") from error

    async def _write_block(self, block: bytes) -> None:
        self._write(SmtpStage.DATA, block)
        try:
            await self._connection.drain(seconds=self._timeouts.block)
        except ConnectionBroken as error:
            raise connection_error(SmtpStage.DATA, str(error)) from error
        if self._connection.has_reply:
            # An early reply is a refusal; even a positive one does not accept half a message.
            try:
                await self._expect(SmtpStage.DATA, expected=NOTHING, seconds=self._timeouts.data)
            finally:
                self._connection.close()

    # Sending a command.

    async def _expect(self, stage: SmtpStage, command: bytes = b"", *, expected: int = 2, seconds: float) -> RawReply:
        """Send a command, if given, and return its reply. Raises SmtpError unless the reply has the expected class."""
        if command:
            self._write(stage, command)
        try:
            raw = await self._connection.read_reply(seconds=seconds)
        except InvalidReply as error:
            raise connection_error(stage, str(error), FailureReason.PROTOCOL) from error
        except ConnectionBroken as error:
            raise connection_error(stage, str(error)) from error
        if raw.code // 100 == expected:
            return raw
        if raw.code == CLOSING:
            self._connection.close()
        if raw.code // 100 in REFUSALS:
            raise SmtpError(stage, reply_of(raw.code, raw.lines))
        self._connection.close()
        raise connection_error(stage, f"The host sent an unexpected reply, {raw.code}.", FailureReason.PROTOCOL)

    def _write(self, stage: SmtpStage, data: bytes) -> None:
        try:
            self._connection.write(data)
        except ConnectionBroken as error:
            raise connection_error(stage, str(error)) from error


async def _connect(host: MailHost, deadline: float, timeouts: Timeouts) -> SmtpConnection:
    loop = asyncio.get_running_loop()
    if loop.time() >= deadline:
        raise connection_error(SmtpStage.CONNECT, "No time was left for this host.")
    context = (host.context or context_for(host.tls)) if host.tls is TlsMode.IMPLICIT else None
    name = host.name if context else None
    try:
        async with asyncio.timeout_at(min(loop.time() + timeouts.connect, deadline)):
            _, connection = await loop.create_connection(
                SmtpConnection,
                host.address,
                host.port,
                ssl=context,
                server_hostname=name,
                local_addr=(host.source, 0) if host.source else None,
            )
    except TimeoutError as error:
        raise connection_error(SmtpStage.CONNECT, "The host did not answer in time.") from error
    except ssl.SSLError as error:
        raise connection_error(SmtpStage.STARTTLS, f"TLS with the host failed: {error}", FailureReason.TLS) from error
    except OSError as error:
        raise connection_error(SmtpStage.CONNECT, f"Could not connect: {error}") from error
    connection.deadline = deadline
    return connection


def _result_of_handshake(error: Exception) -> TlsResult:
    if isinstance(error, ssl.SSLCertVerificationError):
        return CERTIFICATE_RESULTS.get(error.verify_code, TlsResult.NOT_TRUSTED)
    return TlsResult.NO_HANDSHAKE
