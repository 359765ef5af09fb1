"""The catch-all SMTP server of embedded mode: listens on loopback only, and stores a message before it replies 250."""

import asyncio
import socket
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial

from aiosmtpd.smtp import SMTP, Envelope, Session
from django.db import close_old_connections, connection

from interfaces.inbound.inbox.storing import store_message

HOST = "127.0.0.1"
MAX_BYTES = 40 * 1024 * 1024
STORED = "250 2.6.0 Caught"
STORAGE_FAILED = "451 4.3.0 Temporary storage failure"


class CatchAllHandler:
    """The aiosmtpd handler: accepts every recipient and stores one row for each."""

    def __init__(self, store_executor: Executor) -> None:
        self._store_executor = store_executor

    async def handle_EHLO(  # noqa: N802
        self, server: SMTP, session: Session, envelope: Envelope, hostname: str, responses: list[str]
    ) -> list[str]:
        # aiosmtpd reads command by command from a buffer, so a client need not wait for each reply (RFC 2920).
        session.host_name = hostname
        return [responses[0], "250-PIPELINING", *responses[1:]]

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        source = envelope.content
        assert isinstance(source, bytes)
        arguments = source, envelope.mail_from or "", envelope.rcpt_tos
        return await asyncio.get_running_loop().run_in_executor(self._store_executor, store_mail, *arguments)


async def serve(port: int) -> None:
    """Listen until the task is cancelled."""
    await serve_on(socket.create_server((HOST, port)))


async def serve_on(listener: socket.socket) -> None:
    """Accept connections until the task is cancelled."""
    # One thread with one database connection: storing a message takes about 1 ms.
    with ThreadPoolExecutor(1, "store") as store_executor:
        server = await asyncio.get_running_loop().create_server(partial(_protocol, store_executor), sock=listener)
        try:
            async with server:
                await server.serve_forever()
        finally:
            # `connection` is resolved inside the thread, which owns its connection.
            store_executor.submit(lambda: connection.close())  # noqa: PLW0108


def _protocol(store_executor: Executor) -> SMTP:
    return SMTP(
        CatchAllHandler(store_executor),
        hostname="inbox.localhost",
        ident="Postrider inbox",
        data_size_limit=MAX_BYTES,
        enable_SMTPUTF8=True,
    )


def store_mail(source: bytes, envelope_from: str, recipients: list[str]) -> str:
    """Store a message and return the SMTP reply."""
    close_old_connections()
    return STORED if store_message(source, envelope_from, recipients) else STORAGE_FAILED
