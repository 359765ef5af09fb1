"""The catch-all SMTP server of embedded mode: listens on loopback only, and stores a message before it replies 250."""

import asyncio
import logging
import socket
from collections.abc import Iterable
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial

from aiosmtpd.smtp import SMTP, Envelope, Session
from django.db import Error, close_old_connections, connection

from emails.models import Recipient
from inbound.inbox.models import CaughtMail
from inbound.inbox.reading import read_mail
from lib.ids import InvalidId

log = logging.getLogger("postrider.inbox")

HOST = "127.0.0.1"
MAX_BYTES = 40 * 1024 * 1024
STORED = "250 2.6.0 Caught"
STORAGE_FAILED = "451 4.3.0 Temporary storage failure"


class CatchAllHandler:
    """The aiosmtpd handler: accepts every recipient and stores one row for each."""

    def __init__(self, store_executor: Executor) -> None:
        self._store_executor = store_executor

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
    headers = _first_headers(read_mail(source).headers)
    try:
        CaughtMail.objects.bulk_create([_caught(headers, source, envelope_from, address) for address in recipients])
    except Error:
        log.exception("a message could not be stored")
        connection.close()
        return STORAGE_FAILED
    return STORED


def _first_headers(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    return {name.lower(): value for name, value in reversed(tuple(headers))}


def _caught(headers: dict[str, str], source: bytes, envelope_from: str, address: str) -> CaughtMail:
    recipient = _find_recipient(headers.get("message-id", ""), address)
    return CaughtMail(
        workspace_id=recipient.email.workspace_id if recipient else None,
        email_id=recipient.email_id if recipient else None,  # type: ignore[misc]  # empty like the workspace
        envelope_from=envelope_from,
        recipient=address,
        sender=headers.get("from", ""),
        subject=headers.get("subject", ""),
        source=source,
    )


def _find_recipient(message_id: str, address: str) -> Recipient | None:
    """Return the recipient of a message: the Message-ID begins with the recipient's id."""
    recipient_id = message_id.strip("<> ").partition("@")[0]
    try:
        return Recipient.objects.select_related("email").filter(id=recipient_id, address__iexact=address).first()
    except InvalidId:
        return None
