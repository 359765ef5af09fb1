"""The inbound server: it stores reports to return paths, and email for workspaces, before it replies 250.

All other addresses are rejected at RCPT, so the server never sends a bounce. Reports are processed after the
reply: a processing error must not make the remote host send the report again.
See docs/decisions/0029, and for its name docs/decisions/0282.
"""

import asyncio
import logging
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack, contextmanager

from aiosmtpd.smtp import SMTP, Envelope, Session
from django.conf import settings
from django.db import Error, close_old_connections, connection

from core.counters.process_counts import SAVE_SECONDS, RunStep
from core.counters.smtp_usage import SmtpUsage
from core.lib.mail.smtp_limiter import ConnectionLimiter
from core.lib.mail.smtp_limits import SessionLimits
from core.lib.mail.smtp_server import TOO_LARGE
from core.lib.network.tls_certificate import Certificate
from core.lib.worker.database_outage import database_outage
from interfaces.inbound.processing import process_reports
from interfaces.inbound.report_recipients import ACCEPTED, STORED, report_reply, role_account_reply, store_report
from interfaces.inbound.reports.mime import MAX_BYTES
from interfaces.inbound.routed import (
    MAX_RECIPIENTS,
    HourlyMessages,
    count_reply,
    counts,
    is_listed,
    peer_of,
    read_arrival,
    store,
)
from interfaces.inbound.sessions import (
    REPORT_BYTES,
    InboundEnvelope,
    InboundSession,
    InboundSMTP,
    announced_size,
    receiving_memory,
    session_limits,
)
from receiving.arrival import replies
from receiving.arrival.routing import Decision, decide_recipient

log = logging.getLogger("postrider.inbound")

ONE_RECIPIENT_ONLY = "452 4.5.3 One recipient per message"
STORAGE_FAILED = "451 4.3.0 Temporary storage failure"
STORE_THREADS = 4
LARGE_BYTES = 1024 * 1024


class InboundHandler:
    """The aiosmtpd handler. Each thread of an executor has one database connection."""

    def __init__(self, *, store_executor: Executor, process_executor: Executor) -> None:
        self._store_executor = store_executor
        self._process_executor = process_executor
        self._is_processing = self._is_requested = False
        self._messages = HourlyMessages(Counter())
        # Large messages are stored one at a time: the bytes are copied for the database.
        self._large_messages = asyncio.Semaphore(1)

    async def handle_EHLO(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope, hostname: str, responses: list[str]
    ) -> list[str]:
        session.host_name = hostname
        return [response for response in responses if not response.startswith(("250-AUTH", "250 AUTH"))]

    async def handle_MAIL(  # noqa: N802
        self, server: InboundSMTP, session: InboundSession, envelope: InboundEnvelope, address: str, options: list[str]
    ) -> str:
        # Not empty, which would mean that there was no MAIL.
        envelope.mail_from = address or "<>"
        envelope.mail_options.extend(options)
        envelope.announced = announced_size(options)
        return "250 2.1.0 OK"

    async def handle_RCPT(  # noqa: N802
        self, server: InboundSMTP, session: InboundSession, envelope: InboundEnvelope, address: str, options: list[str]
    ) -> str:
        if envelope.is_report:
            return ONE_RECIPIENT_ONLY
        if len(envelope.recipients) >= MAX_RECIPIENTS:
            return count_reply(replies.TOO_MANY_RECIPIENTS)
        found: list[Decision] = []
        sender = (envelope.mail_from or "").strip("<>")
        remote_ip = peer_of(server)
        reply = await self._run_query(lambda: self._decide(address, sender, remote_ip, found))
        if reply == ACCEPTED and not found:
            return self._add_report(envelope, address)
        if not found:
            return count_reply(reply)
        return count_reply(reply if reply != ACCEPTED else await self._add_recipient(server, envelope, found[0]))

    def _decide(self, address: str, sender: str, remote_ip: str | None, found: list[Decision]) -> str:
        """Return the reply to RCPT; add the decision if a workspace has the address."""
        reply = report_reply(address)
        if reply == ACCEPTED:
            return reply
        decision = decide_recipient(address, sender=sender, remote_ip=remote_ip)
        if decision.recipient is None:
            return role_account_reply(address, peer=remote_ip or "")
        found.append(decision)
        return decision.reply

    def _add_report(self, envelope: InboundEnvelope, address: str) -> str:
        if envelope.recipients:
            return count_reply(replies.OTHER_KIND)
        if envelope.announced > REPORT_BYTES:
            return TOO_LARGE
        envelope.rcpt_tos.append(address)
        return ACCEPTED

    async def _add_recipient(self, server: InboundSMTP, envelope: InboundEnvelope, decision: Decision) -> str:
        session = server.current_session()
        peer = _peer(session)
        if not self._messages.has_room(peer):
            return replies.NETWORK_LIMIT
        if session.is_listed is None:
            session.is_listed = await is_listed(peer)
        if session.is_listed:
            return replies.LISTED
        assert decision.recipient
        if envelope.announced > decision.recipient.max_bytes:
            return replies.TOO_LARGE_FOR_RECIPIENT
        if not server.assign(decision.recipient.workspace.id):
            return replies.TOO_MANY_SESSIONS
        envelope.recipients.append(decision.recipient)
        envelope.rcpt_tos.append(decision.recipient.address)
        return ACCEPTED

    async def handle_DATA(  # noqa: N802
        self, server: InboundSMTP, session: InboundSession, envelope: InboundEnvelope
    ) -> str:
        if envelope.recipients:
            return await self._store_message(server, envelope)
        # Copied, like the arrival of a message: the session may end before the thread begins.
        source = bytes(envelope.source[:MAX_BYTES])
        status = await self._run_query(lambda: store_report(envelope, source, peer=_peer(session)))
        if status == STORED:
            self._request_processing()
        return status

    async def _store_message(self, server: InboundSMTP, envelope: InboundEnvelope) -> str:
        arrival, recipients = read_arrival(server, envelope), envelope.recipients
        if len(arrival.source) < LARGE_BYTES:
            reply = await self._run_query(lambda: store(arrival, recipients))
        else:
            async with self._large_messages:
                reply = await self._run_query(lambda: store(arrival, recipients))
        if reply.startswith("250"):
            self._messages.add(_peer(server.current_session()))
        return count_reply(reply)

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


async def serve(sockets: Sequence[socket.socket], *, limits: SessionLimits | None = None) -> None:
    """Accept connections until the task is cancelled."""
    loop = asyncio.get_running_loop()
    with ExitStack() as stack:
        store_executor = stack.enter_context(_threads("store", STORE_THREADS))
        process_executor = stack.enter_context(_threads("process", 1))
        handler = InboundHandler(store_executor=store_executor, process_executor=process_executor)
        limiter, memory = ConnectionLimiter(limits or session_limits()), receiving_memory()
        certificate = _certificate()

        def session() -> InboundSMTP:
            if certificate:
                certificate.refresh()
            context = certificate.context if certificate else None
            return InboundSMTP(handler, limiter=limiter, memory=memory, tls_context=context)

        async def save(step: Callable[[], None]) -> None:
            await loop.run_in_executor(store_executor, step)

        usage = SmtpUsage("inbound", limiter, read_bytes=lambda: memory.used)
        async with AsyncExitStack() as opened:
            servers = [await opened.enter_async_context(await loop.create_server(session, sock=one)) for one in sockets]
            forever = [server.serve_forever() for server in servers]
            await asyncio.gather(usage.keep_saving(save), keep_saving_counts(save), *forever)


async def keep_saving_counts(run: RunStep) -> None:
    """Save the counts of replies from time to time, until the task is cancelled."""
    while True:
        await asyncio.sleep(SAVE_SECONDS)
        await counts.save(run)


@contextmanager
def _threads(name: str, count: int) -> Iterator[Executor]:
    """Yield threads with one database connection each: storing or processing a report takes about 1 ms."""
    with ThreadPoolExecutor(count, name) as executor:
        try:
            yield executor
        finally:
            all_threads = threading.Barrier(count)
            for _ in range(count):
                executor.submit(_close_own_connection, all_threads)


def _close_own_connection(all_threads: threading.Barrier) -> None:
    # `connection` is that of the thread.
    connection.close()
    # No thread takes the task of another one.
    all_threads.wait()


def _certificate() -> Certificate | None:
    if not settings.INBOUND_TLS_CERT:
        return None
    return Certificate(settings.INBOUND_TLS_CERT, settings.INBOUND_TLS_KEY)


def _peer(session: Session) -> str:
    return str(session.peer[0])[:64] if session.peer else ""


def _reply_to_errors(act: Callable[[], str]) -> str:
    close_old_connections()
    try:
        reply = act()
    except Error:
        log.exception("a message could not be stored")
        connection.close()
        return STORAGE_FAILED
    if reply.startswith("250 2.6.0"):
        database_outage.record_success()
    return reply


def _process() -> None:
    close_old_connections()
    try:
        process_reports()
    # The rows stay on the queue; the periodic task tries again.
    except Error:
        log.exception("reports could not be processed")
        connection.close()
