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
from functools import partial
from typing import TypeVar

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
from core.lib.worker.groups import Groups
from interfaces.inbound.processing import process_reports
from interfaces.inbound.report_recipients import (
    ACCEPTED,
    NO_SUCH_ADDRESS,
    STORED,
    max_report_bytes,
    report_reply,
    role_account_reply,
    store_report,
)
from interfaces.inbound.reports.mime import MAX_BYTES
from interfaces.inbound.routed import (
    MAX_RECIPIENTS,
    STORAGE_FAILED,
    HourlyMessages,
    count_reply,
    counts,
    is_listed,
    peer_of,
    process_together,
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
from receiving.arrival.routing import AskedRecipient, Decision, RoutedRecipient, decide_recipients
from receiving.arrival.storing import Delivery

log = logging.getLogger("postrider.inbound")

T = TypeVar("T")

ONE_RECIPIENT_ONLY = "452 4.5.3 One recipient per message"
STORE_THREADS = 4
LARGE_BYTES = 1024 * 1024
# Recipients that are decided, and messages that are stored, at a time; the messages have together at most LARGE_BYTES.
GROUP_SIZE = 50


class InboundHandler:
    """The aiosmtpd handler. Each thread of an executor has one database connection."""

    def __init__(self, *, store_executor: Executor, process_executor: Executor) -> None:
        self._store_executor = store_executor
        self._process_executor = process_executor
        self._is_processing = self._is_requested = False
        self._messages = HourlyMessages(Counter())
        self._recipients: Groups[None, AskedRecipient, Decision] = Groups(self._decide, max_items=GROUP_SIZE)
        # Separate for each workspace: one whose row of usage is locked does not delay the others.
        self._deliveries: Groups[str, Delivery, str] = Groups(
            self._store, max_items=GROUP_SIZE, max_bytes=LARGE_BYTES, size_of=lambda delivery: delivery.size
        )
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
        asked = AskedRecipient(address, (envelope.mail_from or "").strip("<>"), peer_of(server))
        decision = await self._recipients.process(None, asked)
        if decision.recipient is None:
            return self._add_report(envelope, address) if decision.is_accepted else count_reply(decision.reply)
        if not decision.is_accepted:
            return count_reply(decision.reply)
        return count_reply(await self._add_recipient(server, envelope, decision.recipient))

    async def _decide(self, asked: Sequence[AskedRecipient]) -> list[Decision]:
        step = partial(process_together, decide, asked, failed=Decision(STORAGE_FAILED))
        return await self._run_query(step) or [Decision(STORAGE_FAILED)] * len(asked)

    def _add_report(self, envelope: InboundEnvelope, address: str) -> str:
        if envelope.recipients:
            return count_reply(replies.OTHER_KIND)
        envelope.report_bytes = max_report_bytes(address)
        if envelope.announced > envelope.report_bytes:
            return TOO_LARGE
        envelope.rcpt_tos.append(address)
        return ACCEPTED

    async def _add_recipient(self, server: InboundSMTP, envelope: InboundEnvelope, recipient: RoutedRecipient) -> str:
        session = server.current_session()
        peer = _peer(session)
        if not self._messages.has_room(peer):
            return replies.NETWORK_LIMIT
        if session.is_listed is None:
            session.is_listed = await is_listed(peer)
        if session.is_listed:
            return replies.LISTED
        if envelope.announced > recipient.max_bytes:
            return replies.TOO_LARGE_FOR_RECIPIENT
        if not server.assign(recipient.workspace.id):
            return replies.TOO_MANY_SESSIONS
        envelope.recipients.append(recipient)
        envelope.rcpt_tos.append(recipient.address)
        return ACCEPTED

    async def handle_DATA(  # noqa: N802
        self, server: InboundSMTP, session: InboundSession, envelope: InboundEnvelope
    ) -> str:
        if envelope.recipients:
            return await self._store_message(server, envelope)
        # Copied, like the arrival of a message: the session may end before the thread begins.
        is_domain_report = envelope.report_bytes > REPORT_BYTES
        source = bytes(envelope.source if is_domain_report else envelope.source[:MAX_BYTES])
        step = partial(store_report, envelope, source, peer=_peer(session))
        if is_domain_report:
            # Read by the workers: reading takes up to some seconds.
            async with self._large_messages:
                return await self._run_query(step) or STORAGE_FAILED
        status = await self._run_query(step) or STORAGE_FAILED
        if status == STORED:
            self._request_processing()
        return status

    async def _store_message(self, server: InboundSMTP, envelope: InboundEnvelope) -> str:
        delivery = Delivery(read_arrival(server, envelope), envelope.recipients)
        if delivery.size < LARGE_BYTES:
            reply = await self._deliveries.process(envelope.owner, delivery)
        else:
            async with self._large_messages:
                (reply,) = await self._store([delivery])
        if reply.startswith("250"):
            database_outage.record_success()
            self._messages.add(_peer(server.current_session()))
        return count_reply(reply)

    async def _store(self, deliveries: Sequence[Delivery]) -> list[str]:
        step = partial(process_together, store, deliveries, failed=STORAGE_FAILED)
        return await self._run_query(step) or [STORAGE_FAILED] * len(deliveries)

    async def handle_exception(self, error: Exception) -> str:
        """Reply with a temporary error. aiosmtpd's default of 500 would lose the report and expose the error text."""
        log.error("an SMTP session failed", exc_info=error)
        return STORAGE_FAILED

    async def _run_query(self, act: Callable[[], T]) -> T | None:
        """Return the result of a step in a thread; None if the database does not respond."""
        return await asyncio.get_running_loop().run_in_executor(self._store_executor, _with_connection, act)

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


def decide(asked: Sequence[AskedRecipient]) -> list[Decision]:
    """Return the replies to RCPT; a decision has a recipient if a workspace has the address."""
    reports = [report_reply(one.address, peer=one.remote_ip or "") for one in asked]
    unknown = [reply == NO_SUCH_ADDRESS for reply in reports]
    others = iter(decide_recipients([one for one, is_unknown in zip(asked, unknown, strict=True) if is_unknown]))
    found = [
        next(others) if is_unknown else Decision(reply) for reply, is_unknown in zip(reports, unknown, strict=True)
    ]
    return [
        Decision(role_account_reply(one.address, peer=one.remote_ip or ""))
        if is_unknown and not (decision.recipient or decision.is_accepted)
        else decision
        for one, decision, is_unknown in zip(asked, found, unknown, strict=True)
    ]


def _with_connection(act: Callable[[], T]) -> T | None:
    close_old_connections()
    try:
        return act()
    except Error:
        log.exception("a message could not be stored")
        connection.close()
        return None


def _process() -> None:
    close_old_connections()
    try:
        process_reports()
    # The rows stay on the queue; the periodic task tries again.
    except Error:
        log.exception("reports could not be processed")
        connection.close()
