"""The catch-all SMTP server of the embedded mode: loopback only, stores before it says 250."""

import asyncio
import logging
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
NOT_STORED = "451 4.3.0 The inbox cannot store mail now"


class CatchAll:
    """aiosmtpd's handler: accepts every recipient and keeps one copy for each."""

    def __init__(self, storing: Executor) -> None:
        self._storing = storing

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        source = envelope.content
        assert isinstance(source, bytes)
        arguments = source, envelope.mail_from or "", envelope.rcpt_tos
        return await asyncio.get_running_loop().run_in_executor(self._storing, store, *arguments)


async def serve(port: int) -> None:
    """Listen until the task is cancelled."""
    # One thread with one database connection: storing a message takes about a millisecond.
    with ThreadPoolExecutor(1, "storing") as storing:
        server = await asyncio.get_running_loop().create_server(partial(_protocol, storing), host=HOST, port=port)
        try:
            async with server:
                await server.serve_forever()
        finally:
            # Looked up over there: a connection belongs to its thread.
            storing.submit(lambda: connection.close())  # noqa: PLW0108


def _protocol(storing: Executor) -> SMTP:
    return SMTP(CatchAll(storing), hostname="inbox.localhost", ident="Postrider inbox", data_size_limit=MAX_BYTES)


def store(source: bytes, envelope_from: str, recipients: list[str]) -> str:
    """Keep a message and return the SMTP reply."""
    close_old_connections()
    headers = _first_of_each(read_mail(source).headers)
    try:
        CaughtMail.objects.bulk_create([_caught(headers, source, envelope_from, address) for address in recipients])
    except Error:
        log.exception("a message could not be stored")
        connection.close()
        return NOT_STORED
    return STORED


def _first_of_each(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    return {name.lower(): value for name, value in reversed(tuple(headers))}


def _caught(headers: dict[str, str], source: bytes, envelope_from: str, address: str) -> CaughtMail:
    copy_of = _recipient(headers.get("message-id", ""), address)
    return CaughtMail(
        workspace_id=copy_of.email.workspace_id if copy_of else None,
        email_id=copy_of.email_id if copy_of else None,  # type: ignore[misc]  # empty like the workspace
        envelope_from=envelope_from,
        recipient=address,
        sender=headers.get("from", ""),
        subject=headers.get("subject", ""),
        source=source,
    )


def _recipient(message_id: str, address: str) -> Recipient | None:
    """Find whose copy this is: the Message-ID begins with the recipient's id."""
    recipient_id = message_id.strip("<> ").partition("@")[0]
    try:
        return Recipient.objects.select_related("email").filter(id=recipient_id, address__iexact=address).first()
    except InvalidId:
        return None
