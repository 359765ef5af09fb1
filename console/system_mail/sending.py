"""System email queue work: claim system emails, send them by the configured transport and record the outcomes."""

import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta

from cryptography.exceptions import InvalidTag
from django.conf import settings

from console.system_mail import queue
from console.system_mail.html import render_html
from console.system_mail.models import SystemMail, SystemMailKind, SystemMailState
from console.system_mail.queue import SystemMailClaim
from console.system_mail.tls_reports.message import ReportNotSigned, find_domain_key, report_message
from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus
from core.delivery.message.compose import OutgoingMessage
from core.delivery.message.dkim import SigningKey
from core.delivery.transports.interface import LeaseLost, Transport
from core.delivery.transports.router import pinned_transport
from core.lib.email_addresses import Address, parse_address
from core.lib.keyring import UnknownKey
from core.lib.worker.lease_queue import Claim
from core.lib.worker.leases import Lease
from core.lib.worker.once import once
from core.lib.worker.processor import ClaimResult, QueueProcessor
from core.lib.worker.unused_claims import UnusedClaims
from emails.sending.assignments import Assignments
from emails.sending.emails_work import INTERNAL_ERROR, LEASE_LOST, emails_transport, internal_error_outcome
from emails.sending.retries import delay_after
from emails.sending.transports import find_router

log = logging.getLogger("postrider.system_mail")

KIND = "system_mail"
SESSIONS = 8
PARK_DELAY = timedelta(seconds=5)

FINAL_STATES = {
    DeliveryStatus.SENT: SystemMailState.SENT,
    DeliveryStatus.DELIVERED: SystemMailState.SENT,
    DeliveryStatus.BOUNCED: SystemMailState.FAILED,
    DeliveryStatus.FAILED: SystemMailState.FAILED,
}


@dataclass(frozen=True)
class SystemMailJob:
    """A claimed system email, ready to be sent."""

    claim: SystemMailClaim
    message: OutgoingMessage


@dataclass(frozen=True)
class SystemMailResult:
    """A claim and the outcome of its delivery attempt, as an emails.sending.assignments.TransportResult."""

    claim: SystemMailClaim
    outcome: DeliveryOutcome
    reserved: tuple[str, ...] = ()


@dataclass(frozen=True)
class _SystemMailPermit:
    """The lease of a system email, which also stores its transport. reserved: as in its result."""

    lease: Lease
    claim: SystemMailClaim
    assignments: Assignments
    reserved: list[str]

    def is_valid(self) -> bool:
        return self.lease.is_valid()

    async def assign(self, transport: str) -> bool:
        return await self.assignments.assign_with(
            lambda: queue.assign(self.claim, transport), transport=transport, reserved=self.reserved
        )


class SystemMailQueueWork:
    """The system email queue, as a core.lib.worker.processor.QueueWork."""

    kind = KIND
    # A message in flight may be delivered.
    is_repeatable = False

    def __init__(self, transport: Transport) -> None:
        self.sessions = SESSIONS
        self._transport = transport
        self._assignments = Assignments(find_router(transport))
        self.unused: UnusedClaims[Claim] = UnusedClaims(queue.QUEUE.give_back)

    def claim(self, limit: int) -> ClaimResult[SystemMailJob]:
        with self.unused.claiming() as claims:
            claims.extend(queue.claim(limit))
            system_mails = queue.load(claims) if claims else []
            key = find_signing_key() if system_mails else None
            jobs = [job for mail in system_mails if (job := _build_job_or_fail(mail, key))]
        return ClaimResult(jobs, has_leased=bool(claims))

    async def perform(self, job: SystemMailJob, lease: Lease) -> SystemMailResult:
        permit = _SystemMailPermit(lease, job.claim, self._assignments, [])
        try:
            outcome = await self._transport.deliver(job.message, lease=permit)
        except LeaseLost:
            outcome = LEASE_LOST
        return SystemMailResult(job.claim, outcome, tuple(permit.reserved))

    def crash_result(self, job: SystemMailJob, error: BaseException) -> SystemMailResult:
        return SystemMailResult(job.claim, internal_error_outcome(error))

    def record(self, results: Sequence[SystemMailResult]) -> None:
        for result in results:
            _record(result.claim, result.outcome)
        self._assignments.finish(results)

    def renew(self, claims: Collection[SystemMailClaim]) -> list[SystemMailClaim]:
        return queue.renew(claims)


def _record(claim: SystemMailClaim, outcome: DeliveryOutcome) -> None:
    reply = f"{outcome.reply.code or ''} {outcome.reply.text}".strip()
    handed_to = pinned_transport(claim.handed_to, outcome)
    if outcome.status is DeliveryStatus.PARKED and claim.age < claim.max_age:
        queue.defer(claim, wait=PARK_DELAY, reply=reply, attempts=claim.attempt - 1, handed_to=handed_to)
    elif outcome.reason == INTERNAL_ERROR and claim.age < claim.max_age:
        queue.defer_after_crash(claim, wait=delay_after(claim.attempt), reply=reply)
    elif outcome.status is DeliveryStatus.DEFERRED and claim.age < claim.max_age:
        wait = max(delay_after(claim.attempt), outcome.retry_after)
        queue.defer(claim, wait=wait, reply=reply, attempts=claim.attempt, handed_to=handed_to)
    else:
        queue.finish(claim, state=FINAL_STATES.get(outcome.status, SystemMailState.FAILED), reply=reply)


def _build_job_or_fail(mail: SystemMail, key: SigningKey | None) -> SystemMailJob | None:
    """Return a job, or None after failing a system email that cannot be decrypted or signed; the others continue."""
    try:
        return _build_job(mail, key)
    except ReportNotSigned:
        queue.finish(queue.claim_of(mail), state=SystemMailState.FAILED, reply="TLSRPT_DOMAIN has no DKIM key.")
        return None
    except (InvalidTag, UnknownKey) as error:
        details = {"mail": mail.id, "error": type(error).__name__}
        log.error("a system email cannot be decrypted", extra={"data": details})  # noqa: TRY400  # a trace adds nothing
        queue.finish(
            queue.claim_of(mail), state=SystemMailState.FAILED, reply="Its encryption key is missing from APP_KEYS."
        )
        return None


def _build_job(mail: SystemMail, key: SigningKey | None) -> SystemMailJob:
    if mail.kind == SystemMailKind.TLS_REPORT:
        return SystemMailJob(queue.claim_of(mail), report_message(mail))
    sender, text = parse_address(settings.SYSTEM_FROM), mail.text
    message = OutgoingMessage(
        # Bounces go to the operator's mailbox.
        return_path=sender.spec,
        recipient=mail.recipient,
        message_id=f"<{mail.id}@{sender.domain}>",
        date=mail.created_at,
        sender=sender,
        to=(Address("", mail.recipient),),
        subject=mail.subject,
        html=render_html(kind=mail.kind, language=mail.language, subject=mail.subject, text=text),
        text=text,
        key=key,
        requires_tls=settings.DELIVERY_TLS == "required",
        attempt=mail.attempts,
        transport=mail.handed_to or "",
        is_pinned=bool(mail.handed_to),
    )
    return SystemMailJob(queue.claim_of(mail), message)


def find_signing_key() -> SigningKey | None:
    """Return the DKIM key of SYSTEM_FROM's domain; None unless a workspace has verified it."""
    return find_domain_key(parse_address(settings.SYSTEM_FROM).domain)


@once
def system_mail_processor() -> QueueProcessor[SystemMailJob, SystemMailResult]:
    """Return this process's queue processor for system emails."""
    return QueueProcessor(SystemMailQueueWork(emails_transport()))
