"""Notices of new suppressions to the workers, so that deliveries in progress stop before their final dot.

A notice may be lost, as every wake-up: each claim reads the suppressions from the database. It names addresses by
digests, so that Redis stores and transmits none. See docs/decisions/0084.
"""

import hashlib
import json
import logging
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Self

import redis
from django.conf import settings

from core.lib.outage_log import OutageLog
from core.lib.redis_client import ask_redis, connect_redis
from core.lib.worker.shutdown import is_stopping, wait_for_stop
from suppressions.models import Suppression, suppression_key

log = logging.getLogger("postrider.suppressions")
outage = OutageLog(
    log,
    down="Redis does not respond; suppressions are checked at claims only",
    up="Redis responds again; notices of suppressions are received",
)

CHANNEL = "postrider:suppressed"
CONNECT_SECONDS = 1.0
# A connection that broke unnoticed is replaced within this time.
HEALTH_CHECK_SECONDS = 30.0
RECONNECT_SECONDS = 1.0
# In place of a stream, for unsubscribes from all of them; not a slug.
UNSUBSCRIBED = "/unsubscribed"


@dataclass(frozen=True)
class SuppressionNotice:
    """Addresses of a workspace that were suppressed just now, in one stream or in all."""

    workspace_id: str
    digests: frozenset[str]

    @classmethod
    def about(cls, workspace_id: str, addresses: Collection[str], *, stream: str = "", reason: str = "") -> Self:
        blocked = stream or (UNSUBSCRIBED if reason == Suppression.Reason.UNSUBSCRIBE else "")
        return cls(workspace_id, frozenset(_digest(workspace_id, address, blocked) for address in addresses))

    def covers(self, workspace_id: str, address: str, *, stream: str, ignores_unsubscribes: bool) -> bool:
        """Return whether an address must not receive an email of a stream any more."""
        if workspace_id != self.workspace_id:
            return False
        names = ["", stream] if ignores_unsubscribes else ["", stream, UNSUBSCRIBED]
        return any(_digest(workspace_id, address, name) in self.digests for name in names)


def publish_notice(workspace_id: str, addresses: Collection[str], *, stream: str = "", reason: str = "") -> None:
    """Notify all workers of suppressions that are committed. Does nothing without Redis."""
    notice = SuppressionNotice.about(workspace_id, addresses, stream=stream, reason=reason)
    data = json.dumps([notice.workspace_id, *notice.digests])
    ask_redis(settings.REDIS_URL, lambda client: client.publish(CHANNEL, data))


def start_listening(act: Callable[[SuppressionNotice], None]) -> None:
    """Pass each notice to `act`, in a separate thread until the process stops."""
    threading.Thread(target=_listen, args=[act], name="suppressions", daemon=True).start()


def _listen(act: Callable[[SuppressionNotice], None]) -> None:
    while not is_stopping():
        try:
            _read_notices(act)
        except (redis.RedisError, OSError) as error:
            outage.record_failure(error)
        # The thread must survive any error.
        except Exception:
            log.exception("a notice could not be read")
        wait_for_stop(RECONNECT_SECONDS)


def _read_notices(act: Callable[[SuppressionNotice], None]) -> None:
    client = connect_redis(
        settings.REDIS_URL, socket_connect_timeout=CONNECT_SECONDS, health_check_interval=HEALTH_CHECK_SECONDS
    )
    with client, client.pubsub(ignore_subscribe_messages=True) as subscription:  # type: ignore[no-untyped-call]
        subscription.subscribe(CHANNEL)
        outage.record_success()
        while not is_stopping():
            if message := subscription.get_message(timeout=HEALTH_CHECK_SECONDS):
                workspace_id, *digests = json.loads(message["data"])
                act(SuppressionNotice(workspace_id, frozenset(digests)))


def _digest(workspace_id: str, address: str, stream: str) -> str:
    return hashlib.sha256(f"{workspace_id}\n{suppression_key(address, stream=stream)}".encode()).hexdigest()
