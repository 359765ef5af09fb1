"""SMTP server and webhook receiver that record everything they receive in a ledger."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

from tests.audit.ledger import Ledger, ReceivedMessage, WebhookRequest
from tests.stack.stack import free_port
from tests.webhooks.receiver import Received, Receiver, status

MAX_BYTES = 40 * 1024 * 1024


class RecordingHandler:
    """aiosmtpd handler that accepts every message and records it before it answers."""

    def __init__(self, ledger: Ledger, transport: str = "") -> None:
        self.ledger = ledger
        self.transport = transport

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        source = envelope.original_content or b""
        self.ledger.messages += [
            ReceivedMessage.of(address, source, time.time(), envelope.mail_from or "", transport=self.transport)
            for address in envelope.rcpt_tos
        ]
        return "250 2.0.0 Accepted"


@contextmanager
def mail_sink(ledger: Ledger, *, transport: str = "") -> Iterator[int]:
    """Yield the port of a mail host that accepts everything. transport: the one that leads to it."""
    port = free_port()
    handler = RecordingHandler(ledger, transport)
    controller = Controller(handler, hostname="127.0.0.1", port=port, data_size_limit=MAX_BYTES)
    controller.start()
    try:
        yield port
    finally:
        controller.stop()


@contextmanager
def webhook_sink(ledger: Ledger) -> Iterator[Receiver]:
    """Yield a receiver that records its requests and answers with its `statuses` in turn."""
    with Receiver() as receiver:
        receiver.statuses = [200]

        async def answer(request: Received, writer) -> None:
            code = receiver.statuses[len(ledger.requests) % len(receiver.statuses)]
            event_id = request.header("webhook-id") or ""
            skew_seconds = abs(time.time() - int(request.header("webhook-timestamp") or 0))
            ledger.requests.append(WebhookRequest(request.path, event_id, request.body, code, skew_seconds))
            await status(code)(request, writer)

        receiver.answer = answer
        yield receiver
