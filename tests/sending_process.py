"""A worker's email queue with the configured transport, and a mail host that records connections."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

from core.lib.worker.leases import Lease, boot_seconds
from core.lib.worker.stages import Stage
from emails.models import QueueEntry
from emails.sending.emails_work import EmailQueueWork
from emails.sending.scheduling import promote_due
from emails.sending.transports import configured_transport
from tests.event_loops import end_tasks
from tests.stack.stack import free_port


class MailHost(Controller):
    """An SMTP server that accepts everything; counts connections and keeps the recipients and messages."""

    def __init__(self) -> None:
        self.connections, self.recipients, self.messages = 0, list[str](), list[bytes]()
        super().__init__(self, hostname="127.0.0.1", port=free_port())

    def factory(self) -> Any:
        self.connections += 1
        return super().factory()

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        self.recipients += envelope.rcpt_tos
        assert isinstance(envelope.content, bytes)
        self.messages.append(envelope.content)
        return "250 2.0.0 Accepted"


@contextmanager
def relay_to_mail_host(settings: Any) -> Iterator[MailHost]:
    """Yield the mail host to which the configured transport relays."""
    host = MailHost()
    host.start()
    # The controller connects once, to wait for the server.
    host.connections = 0
    settings.DELIVERY_TRANSPORT, settings.SMTP_URL = "smtp", f"smtp://127.0.0.1:{host.port}"
    try:
        yield host
    finally:
        host.stop()


def send_everything() -> int:
    """Send all entries, also scheduled and waiting ones, with the configured transport; return their number."""
    leads = QueueEntry.objects.filter(stage=Stage.SCHEDULED, recipient__position=0)
    leads.update(due_at=datetime.now(UTC) - timedelta(seconds=1))
    promote_due()
    QueueEntry.objects.filter(stage=Stage.WAITING).update(stage=Stage.READY)
    sending = EmailQueueWork(configured_transport(), sessions=50)
    results = perform_jobs(sending, sending.claim(50).jobs)
    sending.record(results)
    return len(results)


def perform_jobs(work: Any, jobs: Sequence[Any]) -> list[Any]:
    """Perform the jobs of a queue at the same time; return their results."""

    async def perform() -> list[Any]:
        results = await asyncio.gather(*(work.perform(job, Lease(boot_seconds())) for job in jobs))
        # The transport keeps its connections for further messages.
        await end_tasks()
        return results

    return asyncio.run(perform())
