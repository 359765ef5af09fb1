"""The SMTP server for return paths: accepts messages to a valid token and stores them before it replies 250.

All other addresses are rejected at RCPT, so the server never sends a bounce. Reports are processed after the
reply: a processing error must not make the remote host send the report again.
See docs/decisions/0029.
"""

import asyncio
import logging
import ssl
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

from aiosmtpd.smtp import SMTP, Envelope, Session
from django.conf import settings
from django.db import Error, close_old_connections, connection

from counters.smtp_usage import SmtpUsage
from delivery.bounces.replies import safe_text
from domains.models import Domain
from emails.models import Recipient
from emails.sending.return_path import read_return_path
from inbound.models import MailReport
from inbound.processing import process_reports
from inbound.reports.mime import MAX_BYTES
from inbound.role_accounts import ROLE_ACCOUNTS, WITH_PROOF, is_acceptable, is_within
from lib.mail.smtp_limiter import ConnectionLimiter
from lib.mail.smtp_limits import SessionLimits
from lib.mail.smtp_server import NOT_SUPPORTED, LimitedSMTP
from lib.outage_log import OutageLog
from lib.tokens import InvalidToken
from lib.worker.failpoints import failpoint

log = logging.getLogger("postrider.inbound")
database_outage = OutageLog(
    log, down="the database is unavailable", up="the database is available again", level=logging.ERROR
)

BOUNCE_PREFIX = "bounce."

ACCEPTED = "250 2.1.5 OK"
STORED = "250 2.6.0 Stored"
NO_SUCH_ADDRESS = "550 5.1.1 No such address"
ONE_RECIPIENT_ONLY = "452 4.5.3 One recipient per message"
STORAGE_FAILED = "451 4.3.0 Temporary storage failure"
DAILY_LIMIT_REACHED = "452 4.3.1 Daily message limit reached"


class ReportSMTP(LimitedSMTP):
    """A session without authentication."""

    def __init__(
        self, handler: "ReportHandler", *, limiter: ConnectionLimiter, tls_context: ssl.SSLContext | None
    ) -> None:
        super().__init__(
            handler,
            limiter=limiter,
            hostname=settings.EHLO_NAME,
            ident="Postrider reports",
            tls_context=tls_context,
            auth_exclude_mechanism=("LOGIN", "PLAIN"),
        )

    async def smtp_AUTH(self, arg: str | None) -> None:  # noqa: N802
        await self.push(NOT_SUPPORTED)


class ReportHandler:
    """The aiosmtpd handler. Each executor is one thread with one database connection."""

    def __init__(self, *, store_executor: Executor, process_executor: Executor) -> None:
        self._store_executor = store_executor
        self._process_executor = process_executor
        self._is_processing = self._is_requested = False

    async def handle_EHLO(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope, hostname: str, responses: list[str]
    ) -> list[str]:
        session.host_name = hostname
        return [response for response in responses if not response.startswith(("250-AUTH", "250 AUTH"))]

    async def handle_RCPT(  # noqa: N802
        self, server: ReportSMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if envelope.rcpt_tos:
            return ONE_RECIPIENT_ONLY
        status = await self._run_query(lambda: rcpt_reply(address, peer=_peer(session)))
        if status == ACCEPTED:
            envelope.rcpt_tos.append(address)
        return status

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        status = await self._run_query(lambda: store_report(session, envelope))
        if status == STORED:
            self._request_processing()
        return status

    async def handle_exception(self, error: Exception) -> str:
        """Reply with a temporary error. aiosmtpd's default of 500 would lose the report and expose the error text."""
        log.error("an SMTP session failed", exc_info=error)
        return STORAGE_FAILED

    async def _run_query(self, act: Callable[[], str]) -> str:
        return await asyncio.get_running_loop().run_in_executor(self._store_executor, _reply_to_errors, act)

    def _request_processing(self) -> None:
        """Process stored reports in the other thread; a report stored meanwhile starts one more run."""
        self._is_requested = True
        if not self._is_processing:
            self._is_processing, self._is_requested = True, False
            future = asyncio.get_running_loop().run_in_executor(self._process_executor, _process)
            future.add_done_callback(self._finish_processing)

    def _finish_processing(self, _: "asyncio.Future[None]") -> None:
        self._is_processing = False
        if self._is_requested:
            self._request_processing()


async def serve(
    *, host: str, port: int, limits: SessionLimits | None = None, started: Callable[[], object] = lambda: None
) -> None:
    """Listen until the task is cancelled. Raises OSError if the port cannot be bound.

    started: called when connections are accepted.
    """
    loop = asyncio.get_running_loop()
    with ExitStack() as stack:
        store_executor, process_executor = (stack.enter_context(_thread(name)) for name in ("store", "process"))
        handler = ReportHandler(store_executor=store_executor, process_executor=process_executor)
        limiter = ConnectionLimiter(limits or SessionLimits())
        tls_context = _tls_context()

        def session() -> ReportSMTP:
            return ReportSMTP(handler, limiter=limiter, tls_context=tls_context)

        async def save(step: Callable[[], None]) -> None:
            await loop.run_in_executor(store_executor, step)

        usage = SmtpUsage("inbound", limiter)
        async with await loop.create_server(session, host=host, port=port) as server:
            started()
            await asyncio.gather(usage.keep_saving(save), server.serve_forever())


@contextmanager
def _thread(name: str) -> Iterator[Executor]:
    """Yield one thread with one database connection: storing or processing a report takes about 1 ms."""
    with ThreadPoolExecutor(1, name) as executor:
        try:
            yield executor
        finally:
            # `connection` is resolved inside the thread, which owns its connection.
            executor.submit(lambda: connection.close())  # noqa: PLW0108


def _tls_context() -> ssl.SSLContext | None:
    if not settings.INBOUND_TLS_CERT:
        return None
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(settings.INBOUND_TLS_CERT, settings.INBOUND_TLS_KEY)
    return context


def rcpt_reply(address: str, *, peer: str) -> str:
    """Return the SMTP reply to RCPT. peer: the IP address of the client."""
    local, _, domain = address.lower().partition("@")
    if not address.isascii():
        return NO_SUCH_ADDRESS
    if local in ROLE_ACCOUNTS:
        return _role_account_reply(domain, peer)
    try:
        recipient_id = read_return_path(local)
    except InvalidToken:
        return NO_SUCH_ADDRESS
    return ACCEPTED if _is_return_path_domain(domain) or _is_bounce_domain_of(recipient_id, domain) else NO_SUCH_ADDRESS


def store_report(session: Session, envelope: Envelope) -> str:
    """Store a message; return the SMTP reply to its final dot."""
    assert isinstance(envelope.content, bytes)
    local = envelope.rcpt_tos[0].lower().partition("@")[0]
    report = MailReport(
        recipient_id=None if local in ROLE_ACCOUNTS else read_return_path(local),  # type: ignore[misc]  # IdField is a str's
        sender=safe_text(envelope.mail_from or "").strip("<>")[:320],
        peer=_peer(session),
        source=envelope.content[:MAX_BYTES],
    )
    if local in ROLE_ACCOUNTS and not is_acceptable(report):
        return DAILY_LIMIT_REACHED
    failpoint("inbound.before_store")
    report.save(force_insert=True)
    failpoint("inbound.after_store")
    return STORED


def _peer(session: Session) -> str:
    return str(session.peer[0])[:64] if session.peer else ""


def _role_account_reply(domain: str, peer: str) -> str:
    is_known = (
        not domain
        or _is_return_path_domain(domain)
        or Domain.objects.filter(name=domain.removeprefix(BOUNCE_PREFIX)).exists()
    )
    if not is_known:
        return NO_SUCH_ADDRESS
    # Most messages are decided by their content (store_report).
    return ACCEPTED if is_within(WITH_PROOF, peer=peer) else DAILY_LIMIT_REACHED


def _is_return_path_domain(domain: str) -> bool:
    return domain == settings.RETURN_PATH_DOMAIN.lower()


def _is_bounce_domain_of(recipient_id: str, domain: str) -> bool:
    """Check that a domain is bounce.<From domain of the recipient's email>."""
    recipients = Recipient.objects.filter(id=recipient_id, email__from_domain=domain.removeprefix(BOUNCE_PREFIX))
    return domain.startswith(BOUNCE_PREFIX) and recipients.exists()


def _reply_to_errors(act: Callable[[], str]) -> str:
    close_old_connections()
    try:
        reply = act()
    except Error as error:
        database_outage.record_failure(error, has_traceback=True)
        connection.close()
        return STORAGE_FAILED
    if reply == STORED:
        database_outage.record_success()
    return reply


def _process() -> None:
    close_old_connections()
    try:
        process_reports()
    # The rows stay on the queue; the periodic task tries again.
    except Error as error:
        database_outage.record_failure(error, has_traceback=True)
        connection.close()
