"""The SMTP server for return paths: it takes what is addressed to a token of ours, and stores it before it says 250.

Anything else is refused at RCPT, so that it never sends an answer to anybody. Reading comes after the
answer: what breaks on a report must not make a host send it again.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import timedelta

from aiosmtpd.smtp import SMTP, Envelope, Session
from django.conf import settings
from django.db import Error, close_old_connections, connection
from django.db.models.functions import Now

from delivery.bounces.replies import safe_text
from domains.models import Domain
from emails.models import Recipient
from emails.sending.return_path import recipient_of
from inbound.models import MailReport
from inbound.processing import process_all
from inbound.protocol import Doorkeeper, Limits, ReportSMTP
from inbound.reports.mime import MAX_BYTES
from lib.tokens import InvalidToken
from lib.worker.failpoints import failpoint

log = logging.getLogger("postrider.inbound")

# RFC 5321, 4.5.1 and RFC 2142: a domain that takes mail has these, and feedback loops want to be told one.
FOR_PEOPLE = frozenset({"postmaster", "abuse"})
FOR_PEOPLE_A_DAY = 500
PREFIX = "bounce."

TAKEN = "250 2.1.5 OK"
STORED = "250 2.6.0 Stored"
UNKNOWN = "550 5.1.1 No such address"
ONE_A_MESSAGE = "452 4.5.3 One recipient a message"
NOT_NOW = "451 4.3.0 Cannot store reports now"
ENOUGH = "452 4.3.1 Enough mail for people today"


class Reports:
    """aiosmtpd's handler. storing and reading are a thread with a database connection each."""

    def __init__(self, *, storing: Executor, reading: Executor) -> None:
        self._storing = storing
        self._reading = reading
        self._is_awake = self._is_called = False

    async def handle_EHLO(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope, hostname: str, responses: list[str]
    ) -> list[str]:
        session.host_name = hostname
        return [response for response in responses if not response.startswith(("250-AUTH", "250 AUTH"))]

    async def handle_RCPT(  # noqa: N802
        self, server: ReportSMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if envelope.rcpt_tos:
            return ONE_A_MESSAGE
        status = await self._stored(lambda: admit(address))
        if status == TAKEN:
            envelope.rcpt_tos.append(address)
        elif status == UNKNOWN:
            server.refusals += 1
        return status

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        status = await self._stored(lambda: store(session, envelope))
        if status == STORED:
            self._wake()
        return status

    async def handle_exception(self, error: Exception) -> str:
        """Let the host try again: aiosmtpd would say 500, the report would be lost, and the error's text told."""
        log.error("a session failed", exc_info=error)
        return NOT_NOW

    async def _stored(self, act: Callable[[], str]) -> str:
        return await asyncio.get_running_loop().run_in_executor(self._storing, _or_not_now, act)

    def _wake(self) -> None:
        """Have what was stored read, in one thread; what is stored meanwhile has it look once more."""
        self._is_called = True
        if not self._is_awake:
            self._is_awake, self._is_called = True, False
            future = asyncio.get_running_loop().run_in_executor(self._reading, _process)
            future.add_done_callback(self._sleep)

    def _sleep(self, _: "asyncio.Future[None]") -> None:
        self._is_awake = False
        if self._is_called:
            self._wake()


async def serve(*, host: str, port: int, limits: Limits | None = None) -> None:
    """Listen until the task is cancelled. Raises OSError where it cannot."""
    loop = asyncio.get_running_loop()
    with ExitStack() as stack:
        storing, reading = (stack.enter_context(_thread(name)) for name in ("storing", "reading"))
        handler, doorkeeper = Reports(storing=storing, reading=reading), Doorkeeper(limits or Limits())
        tls_context = _tls_context()

        def session() -> ReportSMTP:
            return ReportSMTP(handler, doorkeeper=doorkeeper, hostname=settings.EHLO_NAME, tls_context=tls_context)

        async with await loop.create_server(session, host=host, port=port) as server:
            await server.serve_forever()


@contextmanager
def _thread(name: str) -> Iterator[Executor]:
    """A thread with one database connection: storing or reading a report takes about a millisecond."""
    with ThreadPoolExecutor(1, name) as executor:
        try:
            yield executor
        finally:
            # Looked up over there: a connection belongs to its thread.
            executor.submit(lambda: connection.close())  # noqa: PLW0108


def _tls_context() -> ssl.SSLContext | None:
    if not settings.INBOUND_TLS_CERT:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(settings.INBOUND_TLS_CERT, settings.INBOUND_TLS_KEY)
    return context


def admit(address: str) -> str:
    """Return the reply to RCPT."""
    local, _, domain = address.lower().partition("@")
    if not address.isascii():
        return UNKNOWN
    if local in FOR_PEOPLE:
        return _admit_for_people(domain)
    try:
        recipient_id = recipient_of(local)
    except InvalidToken:
        return UNKNOWN
    return TAKEN if _is_own(domain) or _is_bounce_domain_of(recipient_id, domain) else UNKNOWN


def store(session: Session, envelope: Envelope) -> str:
    """Keep a message; return the reply to its final dot."""
    assert isinstance(envelope.content, bytes)
    local = envelope.rcpt_tos[0].lower().partition("@")[0]
    failpoint("inbound.before_store")
    MailReport.objects.create(
        recipient_id=None if local in FOR_PEOPLE else recipient_of(local),  # type: ignore[misc]  # IdField is a str's
        sender=safe_text(envelope.mail_from or "").strip("<>")[:320],
        peer=str(session.peer[0])[:64] if session.peer else "",
        source=envelope.content[:MAX_BYTES],
    )
    failpoint("inbound.after_store")
    return STORED


def _admit_for_people(domain: str) -> str:
    is_ours = not domain or _is_own(domain) or Domain.objects.filter(name=domain.removeprefix(PREFIX)).exists()
    if not is_ours:
        return UNKNOWN
    # Anybody may write to these, so they get a share of the disk and no more.
    today = MailReport.objects.filter(recipient_id=None, received_at__gt=Now() - timedelta(days=1))
    return TAKEN if today.count() < FOR_PEOPLE_A_DAY else ENOUGH


def _is_own(domain: str) -> bool:
    return domain == settings.RETURN_PATH_DOMAIN.lower()


def _is_bounce_domain_of(recipient_id: str, domain: str) -> bool:
    """Say whether a domain is bounce.<the domain that the recipient's mail was from>."""
    own = Recipient.objects.filter(id=recipient_id, email__from_domain=domain.removeprefix(PREFIX))
    return domain.startswith(PREFIX) and own.exists()


def _or_not_now(act: Callable[[], str]) -> str:
    close_old_connections()
    try:
        return act()
    except Error:
        log.exception("the database does not answer")
        connection.close()
        return NOT_NOW


def _process() -> None:
    close_old_connections()
    try:
        process_all()
    # The rows are kept, and the next sweep tries again.
    except Error:
        log.exception("reports could not be processed now")
        connection.close()
