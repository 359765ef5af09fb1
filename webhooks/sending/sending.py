"""The work of a drain: claim, sign, post, record."""

import functools
import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime

from cryptography.exceptions import InvalidTag
from django.conf import settings
from django.db.models.functions import Now

from lib.keyring import UnknownKey
from lib.resolver import Resolver
from lib.worker.failpoints import failpoint
from lib.worker.leases import Lease
from lib.worker.processor import Drain
from webhooks.models import WebhookDelivery, WebhookSecret
from webhooks.sending import queue
from webhooks.sending.endpoint_shares import SLOW_SHARE
from webhooks.sending.outcomes import Result, record
from webhooks.sending.post import DNS_SECONDS, Poster, fault_of_ours
from webhooks.sending.queue import Claim
from webhooks.sending.signing import signature_headers
from webhooks.sending.targets import rules

log = logging.getLogger("postrider.webhooks")


@dataclass(frozen=True)
class Posting:
    """All that one attempt takes. keys: the secrets that are valid now, newest first.

    at: the database's time when it was packed. Receivers refuse a signature that is five minutes old or early, and a
    worker's clock may be wrong by more.
    """

    claim: Claim
    url: str
    event_id: str
    body: bytes
    keys: tuple[str, ...]
    at: datetime

    @property
    def key(self) -> str:
        return self.claim.delivery_id

    def headers(self) -> dict[str, str]:
        timestamp = int(self.at.timestamp())
        return signature_headers(self.body, message_id=self.event_id, timestamp=timestamp, keys=self.keys)


class Sending:
    """Webhook deliveries, as lib.worker.processor.Work sees them."""

    kind = "webhooks"
    # What an endpoint's pace holds back may go as soon as a result is in.
    held_back = True

    def __init__(self, poster: Poster, *, sessions: int) -> None:
        self.sessions = sessions
        self.has_found = False
        self._poster = poster
        self._cursor = queue.Cursor()
        # Deliveries of slow endpoints that this process has under way.
        self._slow: set[str] = set()

    def claim(self, limit: int) -> list[Posting]:
        queue.promote()
        slow_limit = max(1, int(self.sessions * SLOW_SHARE)) - len(self._slow)
        claims = self._cursor.claim(limit, slow_limit=slow_limit)
        self.has_found = bool(claims)
        if claims:
            failpoint("webhooks.after_claim")
        postings = pack(claims)
        self._slow |= {posting.key for posting in postings if posting.claim.is_slow}
        return postings

    async def perform(self, posting: Posting, lease: Lease) -> Result:
        if not lease.is_held():
            # Fenced when it is recorded, if the lease is indeed lost.
            return Result(posting.claim, fault_of_ours("lease_lost"))
        if not posting.keys:
            return Result(posting.claim, fault_of_ours("secret_unreadable"))
        failpoint("webhooks.before_post")
        attempt = await self._poster.post(posting.url, body=posting.body, headers=posting.headers())
        failpoint("webhooks.after_post")
        return Result(posting.claim, attempt)

    def crashed(self, posting: Posting, error: BaseException) -> Result:
        return Result(posting.claim, fault_of_ours("internal_error"))

    def record(self, results: Sequence[Result]) -> None:
        self._slow -= {result.claim.delivery_id for result in results}
        failpoint("webhooks.before_record")
        record(results)
        failpoint("webhooks.after_record")

    def renew(self, postings: Collection[Posting]) -> None:
        queue.renew([posting.claim for posting in postings])


def pack(claims: Sequence[Claim]) -> list[Posting]:
    """Read what the claimed deliveries post, in two queries."""
    if not claims:
        return []
    by_id = {held.delivery_id: held for held in claims}
    keys = _keys({held.webhook_id for held in claims})
    rows = WebhookDelivery.objects.filter(id__in=by_id)
    parts = rows.values_list("id", "webhook__url", "event_id", "event__body", Now())
    return [
        Posting(by_id[delivery_id], url, event_id, body.encode(), keys.get(by_id[delivery_id].webhook_id, ()), at)
        # An endpoint that was deleted just now is not among them; what is left of it is ended by a later claim.
        for delivery_id, url, event_id, body, at in parts.order_by()
    ]


def _keys(webhook_ids: Collection[str]) -> dict[str, tuple[str, ...]]:
    keys: dict[str, tuple[str, ...]] = {}
    for row in WebhookSecret.objects.valid().filter(webhook__in=webhook_ids):
        secret = _opened(row)
        if secret:
            keys[row.webhook_id] = (*keys.get(row.webhook_id, ()), secret)
    return keys


def _opened(row: WebhookSecret) -> str:
    """Return a secret, empty when its key has left APP_KEYS: one endpoint's trouble must not stop the others."""
    try:
        return row.secret()
    except (UnknownKey, InvalidTag):
        log.exception("the secret of a webhook cannot be opened", extra={"data": {"webhook": row.webhook_id}})
        return ""


@functools.lru_cache(maxsize=1)
def webhooks_drain() -> Drain[Posting, Result]:
    """Return this process's drain of webhook deliveries."""
    resolver = Resolver(settings.DNS_SERVERS, lifetime_seconds=DNS_SECONDS)
    return Drain(Sending(Poster(rules(), resolver=resolver), sessions=settings.WEBHOOK_CONNECTIONS))
