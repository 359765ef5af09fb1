"""Queue work for webhook deliveries: claim, sign, post, record."""

import functools
import logging
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from cryptography.exceptions import InvalidTag
from django.conf import settings
from django.db import Error
from django.db.models.functions import Now

from core.lib.keyring import UnknownKey
from core.lib.network.resolver import Resolver
from core.lib.worker.event_loop import close_at_stop
from core.lib.worker.failpoints import failpoint
from core.lib.worker.lease_queue import Cursor
from core.lib.worker.leases import Lease
from core.lib.worker.once import once
from core.lib.worker.processor import ClaimResult, QueueProcessor
from core.lib.worker.unused_claims import UnusedClaims
from webhooks.formats import RequestBody, deleted_body, find_format, find_large, format_headers, render_body
from webhooks.models import WebhookDelivery, WebhookSecret, open_headers
from webhooks.sending import queue
from webhooks.sending.endpoint_shares import SLOW_SHARE
from webhooks.sending.large_bodies import LargeBodies
from webhooks.sending.outcomes import AttemptResult, record
from webhooks.sending.post import DNS_SECONDS, Poster, internal_failure
from webhooks.sending.queue import EndpointShares, WebhookClaim
from webhooks.sending.targets import target_rules

log = logging.getLogger("postrider.webhooks")

# Before a delivery that finds no memory for its body is claimed again.
MEMORY_WAIT_SECONDS = 1


@dataclass(frozen=True)
class PostJob:
    """Everything one attempt needs.

    event: its body in the standard format.
    keys: the valid secrets, newest first.
    more_headers: those of the endpoint; None if they cannot be decrypted.
    loaded_at: the database time when the job was loaded. Receivers refuse a signature that is more than five minutes
    off, and a worker's clock may be wrong by more.
    large: the body, if it is rendered for each attempt.
    failure: why there is none.
    """

    claim: WebhookClaim
    url: str
    event_id: str
    event: str
    format: str
    keys: tuple[str, ...]
    more_headers: Mapping[str, str] | None
    loaded_at: datetime
    large: RequestBody | None = None
    failure: str = ""

    @functools.cached_property
    def body(self) -> RequestBody:
        """The body to post. Rendered by the attempt: one event that cannot be rendered must not stop the others."""
        return self.large or RequestBody(render_body(self.event, format_=self.format))

    @property
    def timestamp(self) -> int:
        return int(self.loaded_at.timestamp())

    def headers(self) -> dict[str, str]:
        return format_headers(
            self.body.data, format_=self.format, message_id=self.event_id, timestamp=self.timestamp, keys=self.keys
        )


class WebhookQueueWork:
    """Webhook deliveries, as a core.lib.worker.processor.QueueWork."""

    kind = "webhooks"
    # A POST in flight may have arrived.
    is_repeatable = False

    def __init__(self, poster: Poster, *, sessions: int) -> None:
        self.sessions = sessions
        self._poster = poster
        self._cursor = Cursor[WebhookClaim]()
        # In-flight deliveries of this process to slow endpoints.
        self._slow_in_flight: set[WebhookClaim] = set()
        self._large_bodies = LargeBodies()
        self.unused: UnusedClaims[WebhookClaim] = UnusedClaims(queue.QUEUE.give_back)

    def claim(self, limit: int) -> ClaimResult[PostJob]:
        queue.promote()
        slow_limit = max(1, int(self.sessions * SLOW_SHARE)) - len(self._slow_in_flight)
        with self.unused.claiming() as claims:
            claims.extend(self._cursor.claim(limit, EndpointShares(slow_limit)))
            if claims:
                failpoint("webhooks.after_claim")
            jobs = self._load(claims)
        self._slow_in_flight |= {job.claim for job in jobs if job.claim.is_slow}
        # Each recorded result frees a slot for deliveries that wait because their endpoint is at its pace.
        return ClaimResult(jobs, has_leased=bool(claims), has_waiting=True)

    def _load(self, claims: Sequence[WebhookClaim]) -> list[PostJob]:
        try:
            return [job for loaded in load_jobs(claims) if (job := self._with_large_body(loaded))]
        except Error:
            self._large_bodies.release(claims)
            raise

    async def perform(self, job: PostJob, lease: Lease) -> AttemptResult:
        if not lease.is_valid():
            # If the lease is really lost, the fence rejects this result when it is recorded.
            return AttemptResult(job.claim, internal_failure("lease_lost"))
        if not job.keys or job.more_headers is None:
            return AttemptResult(job.claim, internal_failure("secret_unreadable"))
        if job.failure:
            return AttemptResult(job.claim, internal_failure(job.failure))
        failpoint("webhooks.before_post")
        headers = job.headers()
        sent = {**job.more_headers, **headers, "content-type": job.body.content_type}
        attempt = await self._poster.post(job.url, body=job.body.data, headers=sent)
        failpoint("webhooks.after_post")
        is_final = attempt.status_code in find_format(job.format).final_statuses
        # The log of the delivery does not have the headers of the endpoint.
        return AttemptResult(job.claim, attempt, headers, is_final=is_final)

    def crash_result(self, job: PostJob, error: BaseException) -> AttemptResult:
        return AttemptResult(job.claim, internal_failure("internal_error"))

    def record(self, results: Sequence[AttemptResult]) -> None:
        self._slow_in_flight -= {result.claim for result in results}
        self._large_bodies.release([result.claim for result in results])
        failpoint("webhooks.before_record")
        record(results)
        failpoint("webhooks.after_record")

    def renew(self, claims: Collection[WebhookClaim]) -> list[WebhookClaim]:
        return queue.renew(claims)

    def _with_large_body(self, job: PostJob) -> PostJob | None:
        """Return a job with its body, if it is rendered for each attempt; None if it has to wait for memory."""
        found = find_large(job.event, format_=job.format) if job.keys else None
        if found is None:
            return job
        body_format, event = found
        if not self._large_bodies.has_room(job.claim, body_format.measure(event)):
            queue.QUEUE.put_back([job.claim], wait=str(MEMORY_WAIT_SECONDS))
            return None
        try:
            body = body_format.render(event, job.keys[0], job.timestamp) or deleted_body(event)
        except Error:
            raise
        except Exception:
            log.exception("Cannot render a webhook", extra={"data": {"event": job.event_id}})
            return replace(job, failure="internal_error")
        self._large_bodies.take(job.claim, len(body.data))
        return replace(job, large=body)


def load_jobs(claims: Sequence[WebhookClaim]) -> list[PostJob]:
    """Load the URL, body and secrets of the claimed deliveries, in two queries."""
    if not claims:
        return []
    by_id = {claim.delivery_id: claim for claim in claims}
    keys = _keys({claim.webhook_id for claim in claims})
    rows = WebhookDelivery.objects.filter(id__in=by_id)
    parts = rows.values_list(
        "id", "webhook__url", "event_id", "event__body", "webhook__format", "webhook__sealed_headers", Now()
    )
    # An endpoint deleted in the meantime has no row here; a later claim discards its queue entries.
    loaded = list(parts.order_by())
    sealed_headers = {by_id[delivery_id].webhook_id: sealed for delivery_id, *_, sealed, _ in loaded}
    headers = {endpoint: open_headers(sealed, webhook_id=endpoint) for endpoint, sealed in sealed_headers.items()}
    return [
        PostJob(
            by_id[delivery_id],
            url,
            event_id,
            event,
            format_,
            keys.get(by_id[delivery_id].webhook_id, ()),
            headers[by_id[delivery_id].webhook_id],
            loaded_at,
        )
        for delivery_id, url, event_id, event, format_, _, loaded_at in loaded
    ]


def _keys(webhook_ids: Collection[str]) -> dict[str, tuple[str, ...]]:
    keys: dict[str, tuple[str, ...]] = {}
    for row in WebhookSecret.objects.valid().filter(webhook__in=webhook_ids):
        secret = _open_secret(row)
        if secret:
            keys[row.webhook_id] = (*keys.get(row.webhook_id, ()), secret)
    return keys


def _open_secret(row: WebhookSecret) -> str:
    """Return the secret, or "" if its key is no longer in APP_KEYS: one endpoint must not stop the others."""
    try:
        return row.secret()
    except (UnknownKey, InvalidTag):
        log.exception("Cannot decrypt the secret of a webhook", extra={"data": {"webhook": row.webhook_id}})
        return ""


@once
def webhooks_processor() -> QueueProcessor[PostJob, AttemptResult]:
    """Return the queue processor for webhook deliveries in this process."""
    resolver = Resolver(settings.DNS_SERVERS, lifetime_seconds=DNS_SECONDS)
    poster = Poster(target_rules(), resolver=resolver)
    close_at_stop(poster.close)
    return QueueProcessor(WebhookQueueWork(poster, sessions=settings.WEBHOOK_CONNECTIONS))
