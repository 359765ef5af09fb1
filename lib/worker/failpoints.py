"""Named places at which a test lets a process die, fail, or lose its database or its Redis.

`FAULT_PLAN=emails.after_claim:1:kill,webhooks.after_post:2:raise` lets the first claim of a process kill it, and its
second post raise. Without the variable a place costs one call that does nothing. Knows no Django, so that every
room may name its places (docs/decisions/0058).
"""

import logging
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import psycopg
import redis

log = logging.getLogger("postrider.faults")

# Which process comes by, and what has happened when it does.
POINTS = {
    "emails.before_accept_commit": ("web", "everything is written, nothing is committed"),
    "emails.after_accept_commit": ("web", "committed; no bell has rung, nobody was answered"),
    "emails.before_accept_answer": ("web", "committed and rung; nobody was answered"),
    "emails.before_cancel_commit": ("web", "the queue rows are deleted, nothing is committed"),
    "emails.after_cancel_commit": ("web", "cancelled, and nobody was answered"),
    "emails.before_promote_commit": ("worker", "due rows are ready, nothing is committed"),
    "emails.after_claim": ("worker", "leased and committed, nothing is read"),
    "emails.before_hand_over": ("worker", "packed; no host knows of it"),
    "delivery.before_dot": ("worker", "the host waits for the rest of the message"),
    "delivery.after_dot": ("worker", "the host has the message; its answer was not awaited"),
    "emails.after_hand_over": ("worker", "the outcome is known to this process alone"),
    "emails.before_record": ("worker", "a batch of outcomes is collected"),
    "emails.before_record_commit": ("worker", "outcomes are written, nothing is committed"),
    "emails.after_record": ("worker", "outcomes are committed"),
    "webhooks.after_claim": ("worker", "leased and committed, nothing is read"),
    "webhooks.before_post": ("worker", "packed; the endpoint was not asked"),
    "webhooks.after_post": ("worker", "the endpoint has answered"),
    "webhooks.before_record": ("worker", "a batch of attempts is collected"),
    "webhooks.after_record": ("worker", "attempts are committed"),
    "inbound.before_store": ("inbound", "a report has come in whole"),
    "inbound.after_store": ("inbound", "it is committed; its host was not answered"),
    "inbound.after_claim": ("inbound", "reports are claimed, not read"),
    "inbound.before_settle_commit": ("inbound", "what they mean is written, nothing is committed"),
    "inbound.after_settle": ("inbound", "what they mean is committed"),
    "analytics.before_fold": ("worker", "a sweep of beat's: deltas wait to be added up"),
    "analytics.after_fold": ("worker", "they are added up and committed"),
    "domains.after_claim": ("worker", "a sweep of beat's: due checks are claimed, nothing is asked"),
    "domains.before_record_commit": ("worker", "what a check saw is written, nothing is committed"),
}

# Those of our own role: PostgreSQL's own processes, such as a vacuum, are nobody's but a superuser's to end.
TERMINATE = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()"
)


class Fault(Exception):
    """Raised where the plan says so; nothing in the service expects it."""


@dataclass(frozen=True)
class Planned:
    """What happens at the nth time that this process comes to a point."""

    point: str
    nth: int
    action: str
    seconds: float = 0.0


def _kill(_: Planned) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _raise(planned: Planned) -> None:
    raise Fault(planned.point)


def _sleep(planned: Planned) -> None:
    time.sleep(planned.seconds)


def _drop_database(_: Planned) -> None:
    """Break every connection of our role to the database, ours among them."""
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        connection.execute(TERMINATE)


def _drop_redis(_: Planned) -> None:
    """Empty Redis and break every connection to it."""
    with redis.Redis.from_url(os.environ["REDIS_URL"]) as client:
        client.flushall()
        client.client_kill_filter(_type="normal", skipme=True)


ACTIONS: dict[str, Callable[[Planned], None]] = {
    "kill": _kill,
    "raise": _raise,
    "sleep": _sleep,
    "drop_database": _drop_database,
    "drop_redis": _drop_redis,
}


def read_plan(text: str) -> list[Planned]:
    """Read `point:nth:action`, comma list, `sleep=2.5` with its seconds. Raises ValueError with a sentence."""
    return [_planned(word.strip()) for word in text.split(",") if word.strip()]


def _planned(word: str) -> Planned:
    point, _, rest = word.partition(":")
    nth, _, act = rest.partition(":")
    action, _, seconds = act.partition("=")
    if point not in POINTS or action not in ACTIONS or not nth.isdecimal() or not int(nth):
        raise ValueError(f"FAULT_PLAN holds {word!r}, which is no point:nth:action of lib/worker/failpoints.py.")
    return Planned(point, int(nth), action, float(seconds or 1))


class Faults:
    """Counts how often this process came to each point, and does what is planned."""

    def __init__(self, plan: Sequence[Planned]) -> None:
        self._plan = {(one.point, one.nth): one for one in plan}
        self._visits: Counter[str] = Counter()
        self._lock = threading.Lock()

    def visit(self, point: str) -> None:
        with self._lock:
            self._visits[point] += 1
            planned = self._plan.get((point, self._visits[point]))
        if planned:
            log.warning("a planned fault", extra={"data": {"point": point, "action": planned.action}})
            ACTIONS[planned.action](planned)


def _nothing(point: str) -> None:
    """What a point does in a process without a plan."""


def _from_environment() -> tuple[Callable[[str], None], str]:
    try:
        plan = read_plan(os.environ.get("FAULT_PLAN", ""))
    except ValueError as error:
        return _nothing, str(error)
    return (Faults(plan).visit, "") if plan else (_nothing, "")


# mistake: what is wrong with FAULT_PLAN, for the start to be refused with.
failpoint, mistake = _from_environment()
