"""The listeners of the submission server, and the event loop of each of its processes (docs/decisions/0113)."""

import asyncio
import logging
import socket
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial

from django.conf import settings
from django.db import connection

from core.counters.smtp_usage import SmtpUsage
from core.lib.forking import return_large_blocks
from core.lib.mail.receiving_memory import ReceivingMemory
from core.lib.mail.smtp_limiter import ConnectionLimiter
from core.lib.mail.smtp_limits import SessionLimits
from core.lib.network.listening import CannotListen, close_sockets, open_sockets
from core.lib.network.tls_certificate import Certificate
from interfaces.submission.handler import SubmissionHandler
from interfaces.submission.handshakes import Handshake
from interfaces.submission.metrics import keep_saving_replies
from interfaces.submission.session import LIMITS, SubmissionSMTP

log = logging.getLogger("postrider.submission")

# Each has one database connection. A step takes a few milliseconds, most of them in the database.
THREADS = 4
# One client address may use this share of the sessions, and so may one workspace.
SHARES = 4


@dataclass(frozen=True)
class Listener:
    """A listening socket. has_tls: its connections are encrypted from their start (RFC 8314)."""

    socket: socket.socket
    has_tls: bool


def open_listeners(*, processes: int = 1) -> list[list[Listener]]:
    """Listen on the ports of the settings; return the listeners of each process.

    A port that cannot be used is logged and left out. Raises CannotListen if none can be used.
    Each process has separate sockets, among which the kernel distributes connections evenly. From a shared socket one
    process took most of the connections that arrive together: 28 of 32 (docs/decisions/0123).
    """
    ports = [(port, False) for port in settings.SUBMISSION_PORTS]
    if settings.SUBMISSION_TLS_CERT:
        ports += [(port, True) for port in settings.SUBMISSION_TLS_PORTS]
    errors = {port: error for port, _ in ports if (error := _find_error(port))}
    usable = [(port, has_tls) for port, has_tls in ports if port not in errors]
    for port, error in errors.items():
        if not usable:
            raise error
        log.error("a submission port cannot be used", extra={"data": {"port": port, "error": str(error)}})
    return [
        [Listener(one, has_tls) for port, has_tls in usable for one in _listen(port, is_shared=True)]
        for _ in range(processes)
    ]


def run_server(listeners: Sequence[Listener]) -> None:
    """Accept sessions until the task is cancelled or the process is interrupted."""
    return_large_blocks()
    asyncio.run(serve(listeners))


async def serve(listeners: Sequence[Listener], *, limits: SessionLimits | None = None) -> None:
    """Accept sessions until the task is cancelled."""
    loop = asyncio.get_running_loop()
    limits = limits or session_limits()
    limiter, memory = ConnectionLimiter(limits), ReceivingMemory()
    certificate = _certificate()
    async with AsyncExitStack() as stack:
        executor = stack.enter_context(ThreadPoolExecutor(THREADS, "submission"))
        stack.callback(_close_connections, executor)
        handler = SubmissionHandler(executor)

        def session(*, has_tls: bool) -> asyncio.Protocol:
            if certificate:
                certificate.refresh()
            context = certificate.context if certificate else None
            session = SubmissionSMTP(handler, limiter=limiter, memory=memory, tls_context=context, has_tls=has_tls)
            return Handshake(session, limiter=limiter, context=context) if context and has_tls else session

        servers = []
        for listener in listeners:
            server = await loop.create_server(partial(session, has_tls=listener.has_tls), sock=listener.socket)
            servers.append(await stack.enter_async_context(server))
        usage = SmtpUsage("submission", limiter, read_bytes=lambda: memory.used)
        await asyncio.gather(
            keep_saving_replies(handler.run),
            usage.keep_saving(handler.run),
            *(server.serve_forever() for server in servers),
        )


def session_limits() -> SessionLimits:
    sessions = settings.SUBMISSION_SESSIONS
    share = max(sessions // SHARES, 1)
    return replace(LIMITS, sessions=sessions, sessions_per_peer=share, sessions_per_owner=share)


def _find_error(port: int) -> CannotListen | None:
    """Return why a port cannot be used: another program may use it, with which SO_REUSEPORT would share it."""
    try:
        close_sockets(_listen(port, is_shared=False))
    except CannotListen as error:
        return error
    return None


def _listen(port: int, *, is_shared: bool) -> list[socket.socket]:
    setting = "SUBMISSION_HOST, SUBMISSION_PORTS or SUBMISSION_TLS_PORTS"
    return open_sockets(settings.SUBMISSION_HOST, port, setting=setting, is_shared=is_shared)


def _certificate() -> Certificate | None:
    if not settings.SUBMISSION_TLS_CERT:
        return None
    return Certificate(settings.SUBMISSION_TLS_CERT, settings.SUBMISSION_TLS_KEY)


def _close_connections(executor: ThreadPoolExecutor) -> None:
    """Close the database connection of each thread, after its current step."""
    all_threads = threading.Barrier(THREADS)
    for _ in range(THREADS):
        executor.submit(_close_own_connection, all_threads)


def _close_own_connection(all_threads: threading.Barrier) -> None:
    connection.close()
    # No thread takes the task of another one.
    all_threads.wait()
