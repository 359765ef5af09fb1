"""Failpoints: named places where a test kills the process, raises an error, or drops its database or Redis connections.

`FAULT_PLAN=emails.after_claim:1:kill,webhooks.after_post:2:raise` kills a process at its first claim and raises at its
second POST. Without the variable a failpoint costs one call that does nothing. This module knows nothing of Django, so
that every package may use it (docs/decisions/0058).
"""

import logging
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

import psycopg
import redis

log = logging.getLogger("postrider.failpoints")

# The kind of process that reaches each point, and the state at that point.
POINTS = {
    "emails.before_accept_commit": ("web", "everything is written, nothing is committed"),
    "emails.after_accept_commit": ("web", "committed; no worker is notified, no response is sent"),
    "emails.before_accept_answer": ("web", "committed, workers are notified; no response is sent"),
    "emails.before_cancel_commit": ("web", "the queue entries are deleted, nothing is committed"),
    "emails.after_cancel_commit": ("web", "cancelled; no response is sent"),
    "emails.before_promote_commit": ("worker", "due entries are ready, nothing is committed"),
    "emails.after_claim": ("worker", "leased and committed, nothing is loaded"),
    "emails.before_hand_over": ("worker", "the send job is loaded; no server is contacted"),
    "delivery.before_dot": ("worker", "the receiving server waits for the rest of the message"),
    "delivery.after_dot": ("worker", "the receiving server has the message; its reply is not read"),
    "emails.after_hand_over": ("worker", "only this process knows the outcome"),
    "emails.before_record": ("worker", "a batch of outcomes is collected"),
    "emails.before_record_commit": ("worker", "outcomes are written, nothing is committed"),
    "emails.after_record": ("worker", "outcomes are committed"),
    "events.before_sequence_commit": ("worker", "events have positions in the feed, nothing is committed"),
    "webhooks.before_publish_commit": ("worker", "deliveries are inserted, nothing is committed"),
    "webhooks.after_claim": ("worker", "leased and committed, nothing is loaded"),
    "webhooks.before_post": ("worker", "the request is built; the endpoint is not contacted"),
    "webhooks.after_post": ("worker", "the endpoint has responded"),
    "webhooks.before_record": ("worker", "a batch of attempts is collected"),
    "webhooks.after_record": ("worker", "attempts are committed"),
    "submission.after_data": ("submission", "a message is fully received, nothing is written"),
    "submission.before_reply": ("submission", "committed; the client has no reply yet"),
    "submission.before_replies": ("submission", "a group is committed; none of its clients has a reply yet"),
    "inbound.before_store": ("inbound", "a report is fully received"),
    "inbound.after_store": ("inbound", "the report is committed; the sending server has no reply yet"),
    "inbound.after_claim": ("inbound", "reports are claimed, not parsed"),
    "inbound.before_settle_commit": ("inbound", "the effects of reports are written, nothing is committed"),
    "inbound.after_settle": ("inbound", "the effects of reports are committed"),
    "receiving.before_store": ("inbound", "a message is fully received, nothing is written"),
    "receiving.after_store": ("inbound", "a message is written, nothing is committed"),
    "receiving.after_commit": ("inbound", "a message is committed; the sending server has no reply yet"),
    "receiving.after_claim": ("worker", "received messages are claimed, not read"),
    "receiving.before_record_commit": ("worker", "a reading and its events are written, nothing is committed"),
    "receiving.before_forward_commit": ("worker", "an email is forwarded by its route, nothing is committed"),
    "analytics.before_fold": ("worker", "a scheduled task starts; counter deltas are not folded"),
    "analytics.after_fold": ("worker", "the deltas are folded and committed"),
    "privacy.before_erasure_commit": ("worker", "a step of an erasure is done, nothing is committed"),
    "privacy.after_erasure_step": ("worker", "a step of an erasure is committed"),
    "privacy.before_export_commit": ("worker", "a page of an export is written, nothing is committed"),
    "privacy.after_export_step": ("worker", "a page of an export is committed"),
    "domains.after_claim": ("worker", "due checks are claimed; no query is sent"),
    "domains.before_record_commit": ("worker", "check results are written, nothing is committed"),
}

# Limited to our role: only a superuser may terminate PostgreSQL's own processes, such as a vacuum.
TERMINATE = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()"
)


class FailpointError(Exception):
    """Raised by a failpoint as planned; the service never catches it by name."""


@dataclass(frozen=True)
class PlannedFailure:
    """The action of the nth visit of this process to a point."""

    point: str
    nth: int
    action: str
    seconds: float = 0.0


def _raise(planned: PlannedFailure) -> None:
    raise FailpointError(planned.point)


def _drop_database(_: PlannedFailure) -> None:
    """Terminate every database connection of our role, including our own."""
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        connection.execute(TERMINATE)


def _drop_redis(_: PlannedFailure) -> None:
    """Flush Redis and close every connection to it; a failpoint of another process may close this one."""
    with suppress(redis.ConnectionError), redis.Redis.from_url(os.environ["REDIS_URL"]) as client:
        client.flushall()
        client.client_kill_filter(_type="normal", skipme=True)


ACTIONS: dict[str, Callable[[PlannedFailure], None]] = {
    "kill": lambda _: os.kill(os.getpid(), signal.SIGKILL),
    "raise": _raise,
    "sleep": lambda planned: time.sleep(planned.seconds),
    "drop_database": _drop_database,
    "drop_redis": _drop_redis,
}


def parse_plan(text: str) -> list[PlannedFailure]:
    """Parse a comma-separated list of `point:nth:action`; `sleep=2.5` takes seconds. Raises ValueError."""
    return [_parse_entry(entry.strip()) for entry in text.split(",") if entry.strip()]


def _parse_entry(entry: str) -> PlannedFailure:
    point, _, rest = entry.partition(":")
    nth, _, action_text = rest.partition(":")
    action, _, seconds = action_text.partition("=")
    if point not in POINTS or action not in ACTIONS or not nth.isdecimal() or not int(nth):
        raise ValueError(f"FAULT_PLAN: {entry!r} is not a valid point:nth:action (see core/lib/worker/failpoints.py).")
    return PlannedFailure(point, int(nth), action, float(seconds or 1))


class FailurePlan:
    """Counts the visits of this process to each point and performs the planned failures."""

    def __init__(self, failures: Sequence[PlannedFailure]) -> None:
        self._failures = {(failure.point, failure.nth): failure for failure in failures}
        self._visits: Counter[str] = Counter()
        self._lock = threading.Lock()

    def visit(self, point: str) -> None:
        with self._lock:
            self._visits[point] += 1
            planned = self._failures.get((point, self._visits[point]))
        if planned:
            log.warning("a planned failure", extra={"data": {"point": point, "action": planned.action}})
            ACTIONS[planned.action](planned)


def _do_nothing(point: str) -> None:
    """Ignore the visit: this process has no plan."""


def _from_environment() -> tuple[Callable[[str], None], str]:
    try:
        failures = parse_plan(os.environ.get("FAULT_PLAN", ""))
    except ValueError as error:
        return _do_nothing, str(error)
    return (FailurePlan(failures).visit, "") if failures else (_do_nothing, "")


# plan_error: why FAULT_PLAN is invalid, reported by config.checks; empty when it is valid.
failpoint, plan_error = _from_environment()
