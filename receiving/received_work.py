"""Queue work of received messages: claim, read and verify without a transaction, record (docs/decisions/0230)."""

import asyncio
import logging
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from lib.worker.failpoints import failpoint
from lib.worker.lease_queue import Claim
from lib.worker.leases import Lease
from lib.worker.once import once
from lib.worker.processor import ClaimResult, QueueProcessor
from receiving import content
from receiving.models import Message, ReceivedEmail
from receiving.processing import MAX_ATTEMPTS, NOT_READ, ReadResult, claim_messages, record_reading, renew
from receiving.reading.budget import ProcessorBudget, TooExpensive
from receiving.reading.dns_lookups import MessageLookups
from receiving.reading.message import Reading, read_header, read_received
from receiving.reading.spam import check_spam
from receiving.reading.verdicts import ReceivedEnvelope, verify_origin

log = logging.getLogger("postrider.receiving")

KIND = "receiving"
# Most of them wait for DNS; each has a thread.
SESSIONS = 16
# Sources in a process at a time. A reading briefly takes about three times as much.
MEMORY_BYTES = 64 * 1024 * 1024
SMALL_BYTES = 256 * 1024


@dataclass(frozen=True)
class ReceivedJob:
    """A claimed message. recipient: one of its envelope, for the spam filter."""

    claim: Claim
    source: bytes
    envelope: ReceivedEnvelope
    recipient: str


class ReceivedQueueWork:
    """The messages to read, as a lib.worker.processor.QueueWork."""

    kind = KIND
    sessions = SESSIONS

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(SESSIONS, "receiving")
        # Bytes of the sources in flight, by claim.
        self._bytes: dict[Claim, int] = {}

    def claim(self, limit: int) -> ClaimResult[ReceivedJob]:
        rows = list(self._claim_rows(limit))
        if not rows:
            return ClaimResult([], has_leased=False)
        failpoint("receiving.after_claim")
        claims = [(Claim(key, fence, attempt), size) for key, fence, attempt, size in rows]
        jobs = [job for claim, size in claims if (job := self._load(claim, size))]
        return ClaimResult(jobs, has_leased=True, has_waiting=True)

    def _claim_rows(self, limit: int) -> Iterator[tuple[Any, ...]]:
        """Yield claimed rows whose sources fit into memory: many small ones, or one large one."""
        free = MEMORY_BYTES - sum(self._bytes.values())
        if free < SMALL_BYTES:
            return
        count = min(limit, free // SMALL_BYTES)
        yield from claim_messages(count, condition=f"size <= {SMALL_BYTES}")
        # A message may be larger than the memory if the operator allows it: alone.
        most = 2**31 if not self._bytes else free - count * SMALL_BYTES
        if limit > 1 or not self._bytes:
            yield from claim_messages(1, condition=f"size > {SMALL_BYTES} AND size <= {most}")

    def _load(self, claim: Claim, size: int) -> ReceivedJob | None:
        if claim.attempt > MAX_ATTEMPTS:
            log.error("a message could not be read", extra={"data": {"message": str(claim.key)}})
            record_reading(ReadResult(claim, None, error=NOT_READ))
            return None
        message = Message.objects.only("content_id", "envelope_from", "helo", "remote_ip").get(id=claim.key)
        emails = ReceivedEmail.objects.filter(message=message).order_by("id")
        self._bytes[claim] = size
        return ReceivedJob(
            claim,
            content.open_content(message.content_id),
            ReceivedEnvelope(message.envelope_from, message.helo, message.remote_ip),
            emails.values_list("recipient", flat=True).first() or "",
        )

    async def perform(self, job: ReceivedJob, lease: Lease) -> ReadResult:
        loop = asyncio.get_running_loop()
        lookups = MessageLookups(loop, settings.DNS_SERVERS)
        (reading, authentication, error), spam = await asyncio.gather(
            loop.run_in_executor(self._threads, read_and_verify, job, lookups),
            check_spam(job.source, envelope=job.envelope, recipient=job.recipient),
        )
        return ReadResult(job.claim, reading, authentication, spam, error)

    def crash_result(self, job: ReceivedJob, error: BaseException) -> ReadResult:
        log.error("a message could not be read", exc_info=error)
        return ReadResult(job.claim, None, error=NOT_READ)

    def record(self, results: Sequence[ReadResult]) -> None:
        for result in results:
            record_reading(result)
            self._bytes.pop(result.claim, None)

    def renew(self, claims: Collection[Claim]) -> Collection[Claim]:
        return renew(claims)


def read_and_verify(job: ReceivedJob, lookups: MessageLookups) -> tuple[Reading | None, dict[str, Any], str]:
    """Return the reading of a message, its verdicts, and why it is unreadable; in a thread of its own."""
    reading, error = read_or_explain(job.source, envelope_from=job.envelope.mail_from)
    senders = reading.senders if reading else ()
    return reading, verify_origin(job.source, envelope=job.envelope, senders=senders, lookups=lookups), error


def read_or_explain(source: bytes, *, envelope_from: str) -> tuple[Reading | None, str]:
    """Return the reading of a message, of its header if there is no more, and why it is unreadable."""
    try:
        return read_received(source, envelope_from=envelope_from, budget=ProcessorBudget()), ""
    except TooExpensive as error:
        explanation = str(error)
    except Exception:
        log.exception("a message could not be read")
        explanation = NOT_READ
    try:
        return read_header(source, envelope_from=envelope_from), explanation
    except Exception:
        log.exception("the header of a message could not be read")
        return None, explanation


@once
def received_processor() -> QueueProcessor[ReceivedJob, ReadResult]:
    """Return this process's queue processor for received messages."""
    return QueueProcessor(ReceivedQueueWork())
