"""One SMTP session (RFC 5321): open it to a host, send one message after another, close it."""

import asyncio
import base64
import logging
import ssl
from collections.abc import Sequence
from dataclasses import dataclass

from delivery.bounces.classification import Stage
from delivery.bounces.reasons import Reason
from delivery.bounces.replies import Reply, reply_of
from delivery.message.delivery_request import Envelope
from delivery.transports.interface import Lease, LeaseLost
from delivery.transports.smtp.commands import dot_stuffed, mail_command, rcpt_command
from delivery.transports.smtp.errors import CLOSING, SmtpError, broken
from delivery.transports.smtp.login import MECHANISMS, Login
from delivery.transports.smtp.server import RFC_5321, Server, Timeouts
from delivery.transports.smtp.tls import Tls, context_for
from delivery.transports.smtp.wire import NotSmtp, RawReply, Wire, WireBroken
from lib.worker.failpoints import failpoint

log = logging.getLogger("postrider.delivery")

BLOCK_BYTES = 64 * 1024
# The first digits of replies: what a command wants, and what says no.
WANTED = {Stage.MAIL: 2, Stage.RCPT: 2, Stage.DATA: 3}
REFUSALS = (4, 5)
NOTHING = 0


@dataclass(frozen=True)
class Receipt:
    """The reply to the final dot; whether the host has promised a DSN."""

    reply: Reply
    dsn_requested: bool


class Session:
    """One connection to one host. Whatever raises Setback leaves it as usable as `is_usable` says."""

    def __init__(self, wire: Wire, server: Server, timeouts: Timeouts) -> None:
        self._wire = wire
        self._server = server
        self._timeouts = timeouts
        self._extensions: dict[str, str] = {}
        self._needs_reset = False
        self.is_secure = server.tls is Tls.IMPLICIT
        self.messages = 0
        self.kept_since = 0.0

    @classmethod
    async def open(cls, server: Server, *, deadline: float, timeouts: Timeouts = RFC_5321) -> "Session":
        """Connect, greet, secure, log in, all by the deadline (in the loop's time). Raises Setback."""
        wire = await _connect(server, deadline, timeouts)
        session = cls(wire, server, timeouts)
        try:
            await session._begin()
        except BaseException:
            session.close()
            raise
        return session

    @property
    def is_usable(self) -> bool:
        return self._wire.is_quiet

    async def send(self, envelope: Envelope, message: bytes, *, lease: Lease, deadline: float) -> Receipt:
        """Send one message and return the reply to its final dot. Raises Setback, and LeaseLost before the end."""
        self._wire.deadline = deadline
        if self._needs_reset:
            await self._reset()
        self._needs_reset = True
        commands = self._envelope_commands(envelope, message)
        try:
            await (self._pipelined if "PIPELINING" in self._extensions else self._one_by_one)(commands)
            reply = await self._body(message, lease)
        except (asyncio.CancelledError, LeaseLost):
            self.close()
            raise
        self._needs_reset = False
        self.messages += 1
        return Receipt(reply, dsn_requested="DSN" in self._extensions)

    def close(self) -> None:
        """Say goodbye where that makes sense, and close; it may be called again."""
        self._wire.close(b"QUIT\r\n" if self._wire.is_quiet and not self._needs_reset else b"")

    # Opening.

    async def _begin(self) -> None:
        await self._expect(Stage.BANNER, seconds=self._timeouts.banner)
        await self._greet()
        if self._server.tls in (Tls.OPPORTUNISTIC, Tls.REQUIRED):
            await self._secure()
        if self._server.login:
            await self._log_in(self._server.login)

    async def _greet(self) -> None:
        name = self._server.ehlo_name.encode()
        try:
            raw = await self._expect(Stage.EHLO, b"EHLO " + name + b"\r\n", seconds=self._timeouts.ehlo)
        except SmtpError as setback:
            if setback.reply.code not in range(500, 600):
                raise
            await self._greet_plainly(b"HELO " + name + b"\r\n", setback)
            return
        words = [line.decode("ascii", "replace").upper().partition(" ") for line in raw.lines[1:]]
        self._extensions = {keyword: rest for keyword, _, rest in words}

    async def _greet_plainly(self, command: bytes, refusal: SmtpError) -> None:
        """Say HELO to a host that refused EHLO (section 3.2)."""
        try:
            await self._expect(Stage.EHLO, command, seconds=self._timeouts.ehlo)
        except SmtpError as setback:
            # What was said of EHLO tells more than the connection that broke thereafter.
            raise (setback if setback.reply.code else refusal) from None
        self._extensions = {}

    async def _secure(self) -> None:
        is_mandatory = self._server.tls.is_mandatory
        if "STARTTLS" not in self._extensions:
            if is_mandatory:
                raise broken(
                    Stage.STARTTLS, "The host offers no TLS, and the connection must be encrypted.", Reason.TLS
                )
            return
        try:
            await self._expect(Stage.STARTTLS, b"STARTTLS\r\n", seconds=self._timeouts.tls)
        except SmtpError as setback:
            # A host that offers TLS and then has none may still be spoken to in clear, as one that offers none.
            if is_mandatory or not setback.reply.code or setback.reply.code == CLOSING:
                raise
            return
        await self._handshake()
        # Nothing that was said in clear counts any more (RFC 3207, section 4.2).
        await self._greet()

    async def _handshake(self) -> None:
        context = self._server.context or context_for(self._server.tls)
        try:
            await self._wire.start_tls(context, name=self._server.name, seconds=self._timeouts.tls)
        except NotSmtp as error:
            raise broken(Stage.STARTTLS, str(error), Reason.PROTOCOL) from error
        except (OSError, WireBroken) as error:
            self._wire.close()
            raise broken(Stage.STARTTLS, f"No TLS with the host: {error}", Reason.TLS) from error
        self.is_secure = True

    async def _log_in(self, login: Login) -> None:
        if not self.is_secure:
            raise broken(Stage.AUTH, "The password is not sent over a connection in clear.", Reason.TLS)
        offered = self._extensions.get("AUTH", "").split()
        mechanism = next((name for name in MECHANISMS if name in offered), None)
        if not mechanism:
            text = "The host offers no way to log in that we know (PLAIN, LOGIN, CRAM-MD5)."
            raise broken(Stage.AUTH, text, Reason.LOGIN_REFUSED)
        command = f"AUTH {mechanism}\r\n".encode()
        for say in MECHANISMS[mechanism]:
            challenge = await self._challenge(command)
            command = base64.b64encode(say(login, challenge)) + b"\r\n"
        await self._expect(Stage.AUTH, command, seconds=self._timeouts.login)

    async def _challenge(self, command: bytes) -> bytes:
        raw = await self._expect(Stage.AUTH, command, wanted=3, seconds=self._timeouts.login)
        try:
            return base64.b64decode(raw.lines[0])
        except ValueError:
            # Some hosts ask for the name and the password in plain words.
            return b""

    # One message.

    async def _reset(self) -> None:
        """Let the host forget the last message; one that will not says nothing of the next, but is left."""
        try:
            await self._expect(Stage.MAIL, b"RSET\r\n", seconds=self._timeouts.envelope)
        except SmtpError as setback:
            self._wire.close()
            raise broken(Stage.MAIL, f"The host did not take RSET: {setback}") from setback

    def _envelope_commands(self, envelope: Envelope, message: bytes) -> list[tuple[Stage, bytes]]:
        self._refuse_what_the_host_cannot(envelope, message)
        return [
            (Stage.MAIL, mail_command(envelope, size=len(message), extensions=self._extensions)),
            (Stage.RCPT, rcpt_command(envelope, notify=self._server.notify, extensions=self._extensions)),
            (Stage.DATA, b"DATA\r\n"),
        ]

    def _refuse_what_the_host_cannot(self, envelope: Envelope, message: bytes) -> None:
        limit = self._extensions.get("SIZE", "")
        if limit.isdigit() and 0 < int(limit) < len(message):
            text = f"5.3.4 The message has {len(message)} bytes; the host takes {limit}."
            raise SmtpError(Stage.MAIL, Reply(552, text))
        if not envelope.recipient.isascii() and "SMTPUTF8" not in self._extensions:
            raise SmtpError(Stage.MAIL, Reply(550, "5.6.7 The address needs SMTPUTF8, which the host does not offer."))

    async def _one_by_one(self, commands: Sequence[tuple[Stage, bytes]]) -> None:
        for stage, command in commands:
            await self._expect(stage, command, wanted=WANTED[stage], seconds=self._seconds(stage))

    async def _pipelined(self, commands: Sequence[tuple[Stage, bytes]]) -> None:
        """Send all at once (RFC 2920); the first refusal is the answer."""
        self._write(Stage.MAIL, b"".join(command for _, command in commands))
        setbacks = [await self._setback(stage) for stage, _ in commands]
        first = next(filter(None, setbacks), None)
        if not first:
            return
        if not setbacks[-1]:
            # The host waits for the body of a message that has no recipient.
            self._wire.close()
        raise first

    async def _setback(self, stage: Stage) -> SmtpError | None:
        try:
            await self._expect(stage, wanted=WANTED[stage], seconds=self._seconds(stage))
        except SmtpError as setback:
            return setback
        return None

    def _seconds(self, stage: Stage) -> float:
        return self._timeouts.data if stage is Stage.DATA else self._timeouts.envelope

    async def _body(self, message: bytes, lease: Lease) -> Reply:
        data = dot_stuffed(message)
        *blocks, last = [data[start : start + BLOCK_BYTES] for start in range(0, len(data), BLOCK_BYTES)]
        for block in blocks:
            await self._write_block(block)
        if not lease.is_held():
            raise LeaseLost
        failpoint("delivery.before_dot")
        self._write(Stage.DATA, last)
        try:
            failpoint("delivery.after_dot")
            raw = await self._expect(Stage.DOT, seconds=self._timeouts.dot)
            return reply_of(raw.code, raw.lines)
        except SmtpError:
            raise
        except Exception as error:
            # Whatever broke here is ours, and the host may have the message all the same.
            log.exception("a session broke after the dot")
            self._wire.close()
            raise broken(Stage.DOT, f"An error of this service: {type(error).__name__}.") from error

    async def _write_block(self, block: bytes) -> None:
        self._write(Stage.DATA, block)
        try:
            await self._wire.drained(seconds=self._timeouts.block)
        except WireBroken as error:
            raise broken(Stage.DATA, str(error)) from error
        if self._wire.has_reply:
            # A host that answers before the end has heard enough; what it says to half a message is no acceptance.
            try:
                await self._expect(Stage.DATA, wanted=NOTHING, seconds=self._timeouts.data)
            finally:
                self._wire.close()

    # One command.

    async def _expect(self, stage: Stage, command: bytes = b"", *, wanted: int = 2, seconds: float) -> RawReply:
        """Send a command, if there is one, and return its reply. Raises Setback for any but the wanted class."""
        if command:
            self._write(stage, command)
        try:
            raw = await self._wire.reply(seconds=seconds)
        except NotSmtp as error:
            raise broken(stage, str(error), Reason.PROTOCOL) from error
        except WireBroken as error:
            raise broken(stage, str(error)) from error
        if raw.code // 100 == wanted:
            return raw
        if raw.code == CLOSING:
            self._wire.close()
        if raw.code // 100 in REFUSALS:
            raise SmtpError(stage, reply_of(raw.code, raw.lines))
        self._wire.close()
        raise broken(stage, f"The host answered out of turn, with {raw.code}.", Reason.PROTOCOL)

    def _write(self, stage: Stage, data: bytes) -> None:
        try:
            self._wire.write(data)
        except WireBroken as error:
            raise broken(stage, str(error)) from error


async def _connect(server: Server, deadline: float, timeouts: Timeouts) -> Wire:
    loop = asyncio.get_running_loop()
    if loop.time() >= deadline:
        raise broken(Stage.CONNECT, "There was no time left for this host.")
    context = (server.context or context_for(server.tls)) if server.tls is Tls.IMPLICIT else None
    name = server.name if context else None
    try:
        async with asyncio.timeout_at(min(loop.time() + timeouts.connect, deadline)):
            _, wire = await loop.create_connection(Wire, server.address, server.port, ssl=context, server_hostname=name)
    except TimeoutError as error:
        raise broken(Stage.CONNECT, "The host did not answer in time.") from error
    except ssl.SSLError as error:
        raise broken(Stage.STARTTLS, f"No TLS with the host: {error}", Reason.TLS) from error
    except OSError as error:
        raise broken(Stage.CONNECT, f"No connection: {error}") from error
    wire.deadline = deadline
    return wire
