"""Was the promise of CONTRACT section 4 kept? Asked of the wire, of the callers, and of the database by SQL.

Imports nothing of the service: what it knows of states and events is written down here once more, from the contract.
Every finding is a sentence; an empty list is the proof.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg.rows import namedtuple_row

from tests.audit.ledger import Copy, Ledger

SIMULATOR = "@simulator.test"
FINAL = frozenset({"sent", "delivered", "bounced", "failed", "opened", "clicked", "cancelled"})
HANDED_OVER = frozenset({"sent", "delivered", "opened", "clicked"})
MOVES = {
    ("scheduled", "queued"), ("scheduled", "cancelled"),
    ("queued", "sent"), ("queued", "bounced"), ("queued", "failed"), ("queued", "opened"), ("queued", "clicked"),
    ("sent", "delivered"), ("sent", "bounced"), ("sent", "failed"), ("sent", "opened"), ("sent", "clicked"),
    ("delivered", "bounced"), ("delivered", "opened"), ("delivered", "clicked"), ("opened", "clicked"),
}  # fmt: skip
# What may be told without moving anything, and in which states: a hit after the end, a bounce after an open, an
# acceptance that is written down after the first hit.
FACTS = {
    "opened": FINAL,
    "clicked": FINAL,
    "bounced": {"opened", "clicked", "bounced", "failed"},
    "sent": {"opened", "clicked"},
    "delivered": {"opened", "clicked"},
}
STATES = frozenset({"scheduled", "queued", "sent", "delivered", "bounced", "failed", "opened", "clicked", "cancelled"})
ONCE = ("sent", "delivered", "failed", "cancelled")
PRECEDENCE = ("clicked", "opened", "delivered", "sent", "queued", "scheduled", "bounced", "failed", "cancelled")
# After these nobody knows whether the copy before has arrived.
AMBIGUOUS = ("worker_lost", "outcome_unknown")
# How far the moment of a signature may be from the receiver's (standardwebhooks).
TOLERANCE_SECONDS = 300

RECIPIENTS = """
SELECT r.id, r.email_id, e.workspace_id, r.address, r.state, r.finished_at, e.status,
       EXISTS (SELECT FROM emails_pending p WHERE p.recipient_id = r.id) AS is_pending
  FROM emails_recipient r JOIN emails_email e ON e.id = r.email_id
"""
EVENTS = """
SELECT v.id, v.email_id, v.recipient_id, v.kind, v.payload, e.workspace_id
  FROM emails_event v JOIN emails_email e ON e.id = v.email_id ORDER BY v.number
"""
DELIVERIES = """
SELECT d.event_id, d.status, w.url, w.workspace_id, d.kind, d.is_test
  FROM webhooks_webhookdelivery d JOIN webhooks_webhook w ON w.id = d.webhook_id
"""
USAGE = "SELECT workspace_id, sum(used)::int AS used FROM workspaces_usage GROUP BY 1"
EMAILS = "SELECT id, workspace_id, status FROM emails_email"
MESSAGE_ID = re.compile(rb"^message-id:\s*<([0-9A-Za-z]+)@", re.IGNORECASE | re.MULTILINE)
ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class Books:
    """The database as it is when all is done."""

    emails: list[Any]
    recipients: list[Any]
    events: list[Any]
    deliveries: list[Any]
    usage: dict[str, int]

    @classmethod
    def read(cls, url: str) -> "Books":
        with psycopg.connect(url, row_factory=namedtuple_row) as connection:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            tables = [connection.execute(sql).fetchall() for sql in (EMAILS, RECIPIENTS, EVENTS, DELIVERIES, USAGE)]
        *rest, usage = tables
        return cls(*rest, usage={wire_id(row.workspace_id, "ws_"): row.used for row in usage})


def audit(url: str, ledger: Ledger, *, grace_seconds: float) -> list[str]:
    """Return a sentence for each breach.

    grace_seconds: how long a hand-over that began before a suppression may take; a lease and a bit.
    """
    return list(examine(Books.read(url), ledger, grace_seconds=grace_seconds))


def examine(books: Books, ledger: Ledger, *, grace_seconds: float) -> Iterator[str]:
    yield from _accepted(books, ledger)
    yield from _finished(books)
    yield from _histories(books)
    yield from _copies(books, ledger)
    yield from _nothing_after(books, ledger, grace_seconds)
    yield from _quota(books, ledger)
    yield from _webhooks(books, ledger)
    yield from _reports(books, ledger)
    yield from _walls(books, ledger)


def wire_id(id_: Any, prefix: str = "") -> str:
    """Spell a uuid as the API does: 22 characters of base 62."""
    number, letters = id_.int, []
    for _ in range(22):
        number, rest = divmod(number, 62)
        letters.append(ALPHABET[rest])
    return prefix + "".join(reversed(letters))


def _accepted(books: Books, ledger: Ledger) -> Iterator[str]:
    """What was answered with a 2xx is there, in its workspace, for its recipients; and nothing else is."""
    known = {wire_id(row.id): wire_id(row.workspace_id, "ws_") for row in books.emails}
    addresses = defaultdict(list)
    for row in books.recipients:
        addresses[wire_id(row.email_id)].append(row.address)
    for sent in ledger.sent:
        if known.get(sent.email_id) != sent.workspace:
            yield f"{sent.email_id} was accepted for {sent.workspace} and is not there"
        elif sorted(addresses[sent.email_id]) != sorted(sent.addresses):
            yield f"{sent.email_id} has the recipients {addresses[sent.email_id]}, not {sent.addresses}"
    twice = [id_ for id_, count in Counter(sent.email_id for sent in ledger.sent).items() if count > 1]
    yield from (f"{id_} was answered to two different requests" for id_ in twice)
    unknown = known.keys() - {sent.email_id for sent in ledger.sent}
    yield from (f"{id_} is there, and nobody was told that it was accepted" for id_ in sorted(unknown))


def _finished(books: Books) -> Iterator[str]:
    """Every recipient has one final state, and every email the status that follows."""
    states = defaultdict(set)
    for row in books.recipients:
        states[row.email_id].add(row.state)
        if row.is_pending or row.finished_at is None or row.state not in FINAL:
            yield f"{row.address} is not finished: {row.state}, pending {row.is_pending}, since {row.finished_at}"
    for row in books.emails:
        status = next((state for state in PRECEDENCE if state in states[row.id]), None)
        if row.status != status:
            yield f"{wire_id(row.id)} is {row.status}; its recipients are {sorted(states[row.id])}"


def _histories(books: Books) -> Iterator[str]:
    """Each recipient's timeline is a path of the contract's table, and ends in the state that it has."""
    of_email, of_recipient = defaultdict(list), defaultdict(list)
    for event in books.events:
        (of_recipient[event.recipient_id] if event.recipient_id else of_email[event.email_id]).append(event)
    for row in books.recipients:
        kinds = [event.kind for event in of_email[row.email_id] if event.kind in STATES]
        kinds += [event.kind for event in of_recipient[row.id] if event.kind in STATES]
        state, faults = _walk(kinds)
        yield from (f"{row.address}: {fault} in {kinds}" for fault in faults)
        if state != row.state:
            yield f"{row.address} is {row.state}; its timeline {kinds} ends at {state}"
        yield from (f"{row.address} has {kinds.count(kind)} events {kind}" for kind in ONCE if kinds.count(kind) > 1)


def _walk(kinds: list[str]) -> tuple[str, list[str]]:
    state, *rest = kinds or [""]
    faults = [] if state in {"scheduled", "queued"} else [f"it begins with {state!r}"]
    for kind in rest:
        if (state, kind) in MOVES:
            state = kind
        # A schedule that was moved is told again.
        elif state not in FACTS.get(kind, ()) and (state, kind) != ("scheduled", "scheduled"):
            faults.append(f"{kind} after {state}")
    return state, faults


def _copies(books: Books, ledger: Ledger) -> Iterator[str]:
    """One copy of what was handed over, none of what was not; more only where the timeline says so, and the same."""
    ambiguous = Counter(
        event.recipient_id for event in books.events if (event.payload or {}).get("reason") in AMBIGUOUS
    )
    by_recipient = defaultdict(list)
    for copy in ledger.copies:
        by_recipient[_recipient_of(copy)].append(copy)
    for row in books.recipients:
        copies = by_recipient.pop(wire_id(row.id), [])
        if any(copy.recipient.lower() != row.address.lower() for copy in copies):
            yield f"a copy for {row.address} went to {[copy.recipient for copy in copies]}"
        if len(copies) > 1 + ambiguous[row.id]:
            yield f"{row.address} got {len(copies)} copies; its timeline tells of {ambiguous[row.id]} in doubt"
        if not copies and row.state in HANDED_OVER and not row.address.endswith(SIMULATOR):
            yield f"{row.address} is {row.state} and got nothing"
        if copies and row.state not in HANDED_OVER | {"bounced"} and not ambiguous[row.id]:
            yield f"{row.address} is {row.state} and got {len(copies)}"
        if len({copy.packed for copy in copies}) > 1:
            yield f"{row.address} got copies that differ"
    yield from (f"a copy belongs to nobody: {id_}" for id_ in by_recipient)


def _recipient_of(copy: Copy) -> str:
    """Read it off the Message-ID, which begins with the recipient's id."""
    found = MESSAGE_ID.search(copy.source.partition(b"\r\n\r\n")[0])
    return found[1].decode() if found else "a message without an id"


def _nothing_after(books: Books, ledger: Ledger, grace_seconds: float) -> Iterator[str]:
    """Nothing leaves after a 200 to a cancel, nor by a hand-over that begins after a suppression."""
    recipients = {wire_id(row.id): row for row in books.recipients}
    owners = {wire_id(row.id): wire_id(row.workspace_id, "ws_") for row in books.recipients}
    cancelled = {sent.email_id for sent in ledger.sent if sent.cancelled_at}
    blocked = {(one.workspace, one.address.lower()): one.at for one in reversed(ledger.suppressed)}
    for copy in ledger.copies:
        id_ = _recipient_of(copy)
        if id_ in recipients and wire_id(recipients[id_].email_id) in cancelled:
            yield f"{copy.recipient} got an email that was cancelled"
        since = blocked.get((owners.get(id_, ""), copy.recipient.lower()))
        if since and copy.at > since + grace_seconds:
            yield f"{copy.recipient} got a copy {copy.at - since:.1f} s after it was suppressed"
    states = {wire_id(row.id): row.status for row in books.emails}
    for id_ in cancelled:
        if states.get(id_) != "cancelled":
            yield f"{id_} was cancelled with a 200 and is {states.get(id_)}"


def _quota(books: Books, ledger: Ledger) -> Iterator[str]:
    """The quota is what was accepted, without what was cancelled (the runs end in the month in which they began)."""
    taken = Counter(sent.workspace for sent in ledger.sent if not sent.cancelled_at)
    for workspace in {*taken, *books.usage}:
        if taken[workspace] != books.usage.get(workspace, 0):
            yield f"{workspace} has used {books.usage.get(workspace, 0)} of its quota; {taken[workspace]} were accepted"


def _webhooks(books: Books, ledger: Ledger) -> Iterator[str]:
    """Each event that an endpoint wants came to it at least once, or was given up; the same bytes every time."""
    posts = defaultdict(list)
    for post in ledger.posts:
        posts[post.path, post.event_id].append(post)
    told = {(row.url.partition("/hook")[2], wire_id(row.event_id, "evt_")): row for row in books.deliveries}
    paths = {endpoint.path.partition("/hook")[2]: endpoint for endpoint in ledger.endpoints}
    for tail, endpoint in paths.items():
        for event in books.events:
            if wire_id(event.workspace_id, "ws_") != endpoint.workspace or event.kind not in endpoint.kinds:
                continue
            event_id = wire_id(event.id, "evt_")
            row = told.get((tail, event_id))
            yield from _delivery(endpoint.path, event_id, row, posts[endpoint.path, event_id])
    known = {wire_id(event.id, "evt_") for event in books.events}
    for (path, event_id), same in posts.items():
        if event_id not in known:
            yield f"{path} was told of {event_id}, which never happened"
        if len({post.body for post in same}) > 1:
            yield f"{path} was told of {event_id} in different words"
        if any(post.off_seconds > TOLERANCE_SECONDS for post in same):
            yield f"{path} would not believe {event_id}: it is signed with another time"


def _delivery(path: str, event_id: str, row: Any, posts: list[Any]) -> Iterator[str]:
    if row is None:
        yield f"{path} has no delivery of {event_id}"
        return
    was_taken = any(post.status and 200 <= post.status < 300 for post in posts)
    if row.status == "pending":
        yield f"{path} was neither told of {event_id} nor was that given up"
    if row.status == "succeeded" and not was_taken:
        yield f"{path} never answered 2xx to {event_id}, which is called succeeded"


def _reports(books: Books, ledger: Ledger) -> Iterator[str]:
    """A bounce that our receiver took with a 250 is on its recipient's timeline, once, however often it came."""
    bounces = Counter(wire_id(event.recipient_id) for event in books.events if event.kind == "bounced")
    for recipient_id in ledger.reports:
        if bounces[recipient_id] != 1:
            yield f"a bounce of {recipient_id} was taken and is told {bounces[recipient_id]} times"


def _walls(books: Books, ledger: Ledger) -> Iterator[str]:
    """No byte of one workspace at the other's recipients or endpoints: every email holds its workspace's mark."""
    owners = {wire_id(row.id): wire_id(row.workspace_id, "ws_") for row in books.recipients}
    for copy in ledger.copies:
        yield from _wall(f"a copy for {copy.recipient}", copy.source, owners.get(_recipient_of(copy), ""), ledger)
    endpoints = {endpoint.path: endpoint.workspace for endpoint in ledger.endpoints}
    for post in ledger.posts:
        yield from _wall(f"a post to {post.path}", post.body, endpoints.get(post.path, ""), ledger)
        json.loads(post.body)


def _wall(what: str, data: bytes, workspace: str, ledger: Ledger) -> Iterator[str]:
    for owner, mark in ledger.marks.items():
        if (mark.encode() in data) != (owner == workspace):
            yield f"{what} of {workspace} {'holds' if owner != workspace else 'lacks'} the mark of {owner}"
