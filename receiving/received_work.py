"""Queue work of received messages: claim, read and verify without a transaction, record (docs/decisions/0230).

Emails that were published before are forwarded by their routes between two claims (docs/decisions/0281).
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from uuid import UUID

from django.conf import settings

from core.lib.forking import LARGE_BYTES, return_free_memory
from core.lib.ids import from_uuid
from core.lib.sql import run_replanned
from core.lib.worker.failpoints import failpoint
from core.lib.worker.lease_queue import Cursor
from core.lib.worker.leases import Lease
from core.lib.worker.once import once
from core.lib.worker.processor import ClaimResult, QueueProcessor
from core.lib.worker.unused_claims import UnusedClaims
from receiving import content
from receiving.forwarding.forwards import forward_due
from receiving.processing import ReadResult, record_readings
from receiving.reading.budget import ProcessorBudget, TooExpensive
from receiving.reading.dns_lookups import MessageLookups, SharedLookups
from receiving.reading.header_process import read_header_apart
from receiving.reading.message import MAX_HEADER_BYTES, Reading, read_header, read_received
from receiving.reading.spam import check_spam
from receiving.reading.verdicts import Authentication, ReceivedEnvelope, verify_origin
from receiving.states import NOT_READ, SMALL_BYTES
from receiving.unread.queue import (
    CLAIM_LARGE,
    CLAIM_SMALL,
    MAX_ATTEMPTS,
    QUEUE,
    MessageClaim,
    ReadingShares,
    claim_alone,
    has_alone,
)

log = logging.getLogger("postrider.receiving")

KIND = "receiving"
# Most of them wait for DNS; each has a thread. A workspace leaves a quarter to the others.
SESSIONS = 16
WORKSPACE_SESSIONS = 12
# Sources in a process at a time. A reading briefly takes about three times as much.
MEMORY_BYTES = 64 * 1024 * 1024
# Sources of readings that are recorded in one transaction; their texts are copied for the database.
RECORD_BYTES = 2 * 1024 * 1024
LOAD = """
SELECT id, content_id, envelope_from, helo, host(remote_ip),
       (SELECT recipient FROM receiving_receivedemail e WHERE e.message_id = m.id ORDER BY e.id LIMIT 1)
  FROM receiving_message m WHERE id = ANY(%s)
"""


@dataclass(frozen=True)
class ReceivedJob:
    """A claimed message.

    source: the message, or only its header if it is given up.
    recipient: one of its recipients, for the spam filter.
    """

    claim: MessageClaim
    source: bytes
    envelope: ReceivedEnvelope
    recipient: str


class ReceivedQueueWork:
    """The messages to read, as a core.lib.worker.processor.QueueWork."""

    kind = KIND
    sessions = SESSIONS
    is_repeatable = True

    def __init__(self) -> None:
        self.unused: UnusedClaims[MessageClaim] = UnusedClaims(QUEUE.give_back)
        self._threads = ThreadPoolExecutor(SESSIONS, "receiving")
        self._in_flight: set[MessageClaim] = set()
        self._small: Cursor[MessageClaim] = Cursor()
        self._large: Cursor[MessageClaim] = Cursor()
        self._is_turn_of_alone = False
        self._lookups: SharedLookups | None = None

    def claim(self, limit: int) -> ClaimResult[ReceivedJob]:
        has_forwarded = forward_due(SESSIONS)
        with self.unused.claiming() as claims:
            self._claim_messages(limit, claims)
            if claims:
                failpoint("receiving.after_claim")
            jobs = self._load(claims)
        # Not before all are loaded: without an answer of the database, none is performed.
        self._in_flight.update(job.claim for job in jobs)
        return ClaimResult(jobs, has_leased=bool(claims) or has_forwarded, has_waiting=bool(self._in_flight))

    def _claim_messages(self, limit: int, claims: list[MessageClaim]) -> None:
        """Add claims: of shares, and between two of these of a message that may end this process."""
        if any(claim.is_alone for claim in self._in_flight):
            return
        if not (self._is_turn_of_alone and has_alone()):
            self._claim_shares(limit, claims)
        self._is_turn_of_alone = bool(claims or self._in_flight)
        # It must not end the reading of others: they end first.
        if not self._is_turn_of_alone:
            claims += claim_alone()

    def _claim_shares(self, limit: int, claims: list[MessageClaim]) -> None:
        """Add claims whose sources fit into memory: many small ones, and one large one."""
        free = MEMORY_BYTES - sum(claim.size for claim in self._in_flight)
        if free < SMALL_BYTES:
            return
        count = min(limit, free // SMALL_BYTES)
        claims += self._small.claim(count, self._shares(CLAIM_SMALL))
        # A message may be larger than the memory if the operator allows it: alone.
        is_idle = not self._in_flight and not claims
        most_bytes = 2**31 - 1 if is_idle else free - sum(claim.size for claim in claims)
        if len(claims) < limit and most_bytes > SMALL_BYTES:
            claims += self._large.claim(1, self._shares(CLAIM_LARGE, claims, most_bytes=most_bytes))

    def _shares(self, statement: str, claimed: Sequence[MessageClaim] = (), **options: int) -> ReadingShares:
        counts = Counter(claim.workspace for claim in (*self._in_flight, *claimed))
        return ReadingShares(statement, WORKSPACE_SESSIONS, counts, **options)

    def _load(self, claims: Sequence[MessageClaim]) -> list[ReceivedJob]:
        """Return the jobs of claims, without messages that were deleted since."""
        if ended := [claim for claim in claims if claim.attempt > MAX_ATTEMPTS]:
            record_readings([_give_up(claim, None) for claim in ended])
        by_key = {claim.key: claim for claim in claims if claim not in ended}
        rows = [(by_key[key], *row) for key, *row in run_replanned(LOAD, [[*by_key]])] if by_key else []
        small = content.open_together([row[1] for row in rows if row[0].size <= SMALL_BYTES])
        return [
            ReceivedJob(claim, _source(claim, content_id, small), ReceivedEnvelope(*envelope), recipient or "")
            for claim, content_id, *envelope, recipient in rows
        ]

    async def perform(self, job: ReceivedJob, lease: Lease) -> ReadResult:
        loop = asyncio.get_running_loop()
        if job.claim.is_given_up:
            read = partial(read_header_apart, job.source, envelope_from=job.envelope.mail_from)
            return _give_up(job.claim, await loop.run_in_executor(self._threads, read))
        lookups = MessageLookups(self._shared_lookups(loop))
        (reading, authentication, error), spam = await asyncio.gather(
            loop.run_in_executor(self._threads, read_and_verify, job, lookups),
            check_spam(
                job.source,
                url=settings.RSPAMD_URL,
                password=settings.RSPAMD_PASSWORD,
                envelope=job.envelope,
                recipient=job.recipient,
            ),
        )
        return ReadResult(job.claim, reading, authentication, spam, error)

    def _shared_lookups(self, loop: asyncio.AbstractEventLoop) -> SharedLookups:
        if self._lookups is None or self._lookups.loop is not loop:
            self._lookups = SharedLookups(loop, settings.DNS_SERVERS)
        return self._lookups

    def crash_result(self, job: ReceivedJob, error: BaseException) -> ReadResult:
        log.error("a message could not be read", exc_info=error)
        return ReadResult(job.claim, None, error=NOT_READ)

    def record(self, results: Sequence[ReadResult]) -> None:
        # Also those that the database refuses are no longer in memory.
        self._in_flight.difference_update(result.claim for result in results)
        for batch in _batches(results):
            self.unused.add(record_readings(batch))
        if _has_large(result.claim for result in results) and not _has_large(self._in_flight):
            return_free_memory()

    def renew(self, claims: Collection[MessageClaim]) -> Collection[MessageClaim]:
        return QUEUE.renew(claims)


def _source(claim: MessageClaim, content_id: UUID, small: Mapping[UUID, bytes]) -> bytes:
    """Return the bytes of a message, or of its header if it is given up. small: contents of at most SMALL_BYTES."""
    size = min(claim.size, MAX_HEADER_BYTES) if claim.is_given_up else claim.size
    if claim.size <= SMALL_BYTES:
        return small.get(content_id, b"")[:size]
    return content.open_range(from_uuid(content_id, prefix=content.PREFIX), 0, size)


def _batches(results: Sequence[ReadResult]) -> Iterator[list[ReadResult]]:
    """Yield results that are recorded in one transaction each."""
    batch: list[ReadResult] = []
    size = 0
    for result in results:
        size += result.claim.size
        if batch and size > RECORD_BYTES:
            yield batch
            batch, size = [], result.claim.size
        batch.append(result)
    if batch:
        yield batch


def _has_large(claims: Iterable[MessageClaim]) -> bool:
    return any(claim.size > LARGE_BYTES for claim in claims)


def _give_up(claim: MessageClaim, reading: Reading | None) -> ReadResult:
    """Return the result of a message that ended its workers. reading: of its header."""
    log.error("a message could not be read", extra={"data": {"key": str(claim.key)}})
    return ReadResult(claim, reading, error=NOT_READ)


def read_and_verify(job: ReceivedJob, lookups: MessageLookups) -> tuple[Reading | None, Authentication, str]:
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
