"""Auditor of the guarantees in docs/specification.md, Delivery: compares the ledger with the database.

It imports nothing of the service: states, transitions and events are defined here again, from the specification.
Every violation is a sentence; an empty list means that all guarantees hold.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg.rows import namedtuple_row

from tests.audit.ledger import Ledger, ReceivedMessage

SIMULATOR = "@simulator.test"
FINAL = frozenset({"sent", "delivered", "bounced", "failed", "opened", "clicked", "cancelled"})
SENT_STATES = frozenset({"sent", "delivered", "opened", "clicked"})
TRANSITIONS = {
    ("scheduled", "queued"), ("scheduled", "cancelled"),
    ("queued", "sent"), ("queued", "bounced"), ("queued", "failed"), ("queued", "opened"), ("queued", "clicked"),
    ("sent", "delivered"), ("sent", "bounced"), ("sent", "failed"), ("sent", "opened"), ("sent", "clicked"),
    ("delivered", "bounced"), ("delivered", "opened"), ("delivered", "clicked"), ("opened", "clicked"),
}  # fmt: skip
# Events that change no state, and the states in which they may occur: an open or click after a final state, a bounce
# after an open, an acceptance that is recorded after the first open.
EVENTS_WITHOUT_TRANSITION = {
    "opened": FINAL,
    "clicked": FINAL,
    "bounced": {"opened", "clicked", "bounced", "failed"},
    "sent": {"opened", "clicked"},
    "delivered": {"opened", "clicked"},
}
STATES = frozenset({"scheduled", "queued", "sent", "delivered", "bounced", "failed", "opened", "clicked", "cancelled"})
ONCE = ("sent", "delivered", "failed", "cancelled")
PRECEDENCE = ("clicked", "opened", "delivered", "sent", "queued", "scheduled", "bounced", "failed", "cancelled")
# Reasons of attempts that may have delivered the message.
AMBIGUOUS = ("worker_lost", "outcome_unknown")
# Allowed difference between a signed timestamp and the receiver's time (standardwebhooks).
TOLERANCE_SECONDS = 300

RECIPIENTS = """
SELECT r.id, r.email_id, e.workspace_id, r.address, r.state, r.finished_at, e.status,
       EXISTS (SELECT FROM emails_pending p WHERE p.recipient_id = r.id) AS is_pending
  FROM emails_recipient r JOIN emails_email e ON e.id = r.email_id
"""
EVENTS = """
SELECT v.id, v.email_id, v.recipient_id, v.kind, v.payload, coalesce(v.workspace_id, e.workspace_id) AS workspace_id
  FROM emails_event v LEFT JOIN emails_email e ON e.id = v.email_id ORDER BY v.number
"""
DELIVERIES = """
SELECT d.event_id, d.status, w.url, w.workspace_id, d.kind, d.is_test
  FROM webhooks_webhookdelivery d JOIN webhooks_webhook w ON w.id = d.webhook_id
"""
USAGE = "SELECT workspace_id, sum(used)::int AS used FROM workspaces_usage GROUP BY 1"
RECEIVED = """
SELECT e.id, e.workspace_id, m.sha256, e.recipient, e.status, e.event_id
  FROM receiving_receivedemail e JOIN receiving_message m ON m.id = e.message_id
"""
EMAILS = "SELECT id, workspace_id, status FROM emails_email"
MESSAGE_ID = re.compile(rb"^message-id:\s*<([0-9A-Za-z_]+)@", re.IGNORECASE | re.MULTILINE)
# Emails to the staff, such as those about a paused transport; they belong to no workspace.
SYSTEM_EMAIL = "sysm_"
ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True)
class DatabaseSnapshot:
    """The database after all work is done."""

    emails: list[Any]
    recipients: list[Any]
    events: list[Any]
    deliveries: list[Any]
    usage: dict[str, int]
    received: list[Any] = field(default_factory=list)

    @classmethod
    def read(cls, url: str) -> "DatabaseSnapshot":
        with psycopg.connect(url, row_factory=namedtuple_row) as connection:
            connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            statements = (EMAILS, RECIPIENTS, EVENTS, DELIVERIES, USAGE, RECEIVED)
            *rest, usage, received = [connection.execute(sql).fetchall() for sql in statements]
        used = {wire_id(row.workspace_id, "ws_"): row.used for row in usage}
        return cls(*rest, usage=used, received=received)


def audit(url: str, ledger: Ledger, *, grace_seconds: float) -> list[str]:
    """Return a sentence for each violation.

    grace_seconds: how long a delivery that began before a suppression may take: slightly more than a lease.
    """
    return list(find_violations(DatabaseSnapshot.read(url), ledger, grace_seconds=grace_seconds))


def find_violations(snapshot: DatabaseSnapshot, ledger: Ledger, *, grace_seconds: float) -> Iterator[str]:
    yield from _check_accepted(snapshot, ledger)
    yield from _check_finished(snapshot)
    yield from _check_timelines(snapshot)
    yield from _check_messages(snapshot, ledger)
    yield from _check_transports(ledger)
    yield from _check_cancelled_and_suppressed(snapshot, ledger, grace_seconds)
    yield from _check_quota(snapshot, ledger)
    yield from _check_webhooks(snapshot, ledger)
    yield from _check_bounces(snapshot, ledger)
    yield from _check_received(snapshot, ledger)
    yield from _check_isolation(snapshot, ledger)


def wire_id(id_: Any, prefix: str = "") -> str:
    """Encode a uuid as the API does: 22 characters of base 62."""
    number, letters = id_.int, []
    for _ in range(22):
        number, rest = divmod(number, 62)
        letters.append(ALPHABET[rest])
    return prefix + "".join(reversed(letters))


def _check_accepted(snapshot: DatabaseSnapshot, ledger: Ledger) -> Iterator[str]:
    """Each email accepted with a 2xx exists in its workspace with its recipients, and no other email exists."""
    stored = {wire_id(row.id): wire_id(row.workspace_id, "ws_") for row in snapshot.emails}
    addresses = defaultdict(list)
    for row in snapshot.recipients:
        addresses[wire_id(row.email_id)].append(row.address)
    for email in ledger.accepted:
        if stored.get(email.email_id) != email.workspace:
            yield f"{email.email_id} was accepted for {email.workspace} but is missing"
        elif sorted(addresses[email.email_id]) != sorted(email.addresses):
            yield f"{email.email_id} has the recipients {addresses[email.email_id]}, not {email.addresses}"
    repeated = [id_ for id_, count in Counter(email.email_id for email in ledger.accepted).items() if count > 1]
    yield from (f"{id_} was returned for two different requests" for id_ in repeated)
    unknown = stored.keys() - {email.email_id for email in ledger.accepted}
    yield from (f"{id_} exists but was never answered with a 2xx" for id_ in sorted(unknown))


def _check_finished(snapshot: DatabaseSnapshot) -> Iterator[str]:
    """Each recipient has one final state, and each email has the status derived from its recipients."""
    states = defaultdict(set)
    for row in snapshot.recipients:
        states[row.email_id].add(row.state)
        if row.is_pending or row.finished_at is None or row.state not in FINAL:
            yield f"{row.address} is not finished: {row.state}, pending {row.is_pending}, since {row.finished_at}"
    for row in snapshot.emails:
        status = next((state for state in PRECEDENCE if state in states[row.id]), None)
        if row.status != status:
            yield f"{wire_id(row.id)} is {row.status}, but its recipients are {sorted(states[row.id])}"


def _check_timelines(snapshot: DatabaseSnapshot) -> Iterator[str]:
    """Each recipient's timeline follows the transition table and ends in the recipient's state."""
    of_email, of_recipient = defaultdict(list), defaultdict(list)
    for event in snapshot.events:
        (of_recipient[event.recipient_id] if event.recipient_id else of_email[event.email_id]).append(event)
    for row in snapshot.recipients:
        kinds = [event.kind for event in of_email[row.email_id] if event.kind in STATES]
        kinds += [event.kind for event in of_recipient[row.id] if event.kind in STATES]
        state, errors = _replay(kinds)
        yield from (f"{row.address}: {error} in {kinds}" for error in errors)
        if state != row.state:
            yield f"{row.address} is {row.state}, but its timeline {kinds} ends at {state}"
        yield from (f"{row.address} has {kinds.count(kind)} events {kind}" for kind in ONCE if kinds.count(kind) > 1)


def _replay(kinds: list[str]) -> tuple[str, list[str]]:
    """Return the state after these events, and the invalid transitions."""
    state, *rest = kinds or [""]
    errors = [] if state in {"scheduled", "queued"} else [f"it begins with {state!r}"]
    for kind in rest:
        if (state, kind) in TRANSITIONS:
            state = kind
        # Rescheduling adds another scheduled event.
        elif state not in EVENTS_WITHOUT_TRANSITION.get(kind, ()) and (state, kind) != ("scheduled", "scheduled"):
            errors.append(f"{kind} after {state}")
    return state, errors


def _check_messages(snapshot: DatabaseSnapshot, ledger: Ledger) -> Iterator[str]:
    """A sent recipient received one message and others none; identical duplicates need an ambiguous attempt."""
    ambiguous = Counter(
        event.recipient_id for event in snapshot.events if (event.payload or {}).get("reason") in AMBIGUOUS
    )
    by_recipient = defaultdict(list)
    for message in ledger.messages:
        by_recipient[_recipient_id(message)].append(message)
    for row in snapshot.recipients:
        messages = by_recipient.pop(wire_id(row.id), [])
        if any(message.recipient.lower() != row.address.lower() for message in messages):
            yield f"a message for {row.address} went to {[message.recipient for message in messages]}"
        if len(messages) > 1 + ambiguous[row.id]:
            yield f"{row.address} received {len(messages)} messages with {ambiguous[row.id]} ambiguous attempts"
        if not messages and row.state in SENT_STATES and not row.address.endswith(SIMULATOR):
            yield f"{row.address} is {row.state} but received no message"
        if messages and row.state not in SENT_STATES | {"bounced"} and not ambiguous[row.id]:
            yield f"{row.address} is {row.state} but received {len(messages)} messages"
        if len({message.compressed for message in messages}) > 1:
            yield f"{row.address} received different messages"
    unknown = (id_ for id_ in by_recipient if not id_.startswith(SYSTEM_EMAIL))
    yield from (f"a message has an unknown recipient: {id_}" for id_ in unknown)


def _check_transports(ledger: Ledger) -> Iterator[str]:
    """All copies of a message, also of a system email, were sent by the same transport."""
    used = defaultdict(set)
    for message in ledger.messages:
        used[_recipient_id(message), message.recipient].add(message.transport)
    for (_, address), transports in used.items():
        if len(transports) > 1:
            yield f"{address} received copies by {' and '.join(sorted(transports))}"


def _recipient_id(message: ReceivedMessage) -> str:
    """Return the recipient's id, the first part of the Message-ID."""
    found = MESSAGE_ID.search(message.source.partition(b"\r\n\r\n")[0])
    return found[1].decode() if found else "a message without an id"


def _check_cancelled_and_suppressed(snapshot: DatabaseSnapshot, ledger: Ledger, grace_seconds: float) -> Iterator[str]:
    """No message is sent after a cancel is answered with 200, or by a delivery that begins after a suppression."""
    recipients = {wire_id(row.id): row for row in snapshot.recipients}
    owners = {wire_id(row.id): wire_id(row.workspace_id, "ws_") for row in snapshot.recipients}
    cancelled = {email.email_id for email in ledger.accepted if email.cancelled_at}
    suppressed_at = {(one.workspace, one.address.lower()): one.at for one in reversed(ledger.suppressions)}
    for message in ledger.messages:
        id_ = _recipient_id(message)
        if id_ in recipients and wire_id(recipients[id_].email_id) in cancelled:
            yield f"{message.recipient} received a cancelled email"
        since = suppressed_at.get((owners.get(id_, ""), message.recipient.lower()))
        if since and message.at > since + grace_seconds:
            yield f"{message.recipient} received a message {message.at - since:.1f} s after its suppression"
    states = {wire_id(row.id): row.status for row in snapshot.emails}
    for id_ in cancelled:
        if states.get(id_) != "cancelled":
            yield f"the cancel of {id_} was answered with 200, but it is {states.get(id_)}"


def _check_quota(snapshot: DatabaseSnapshot, ledger: Ledger) -> Iterator[str]:
    """The used quota is the number of accepted emails without cancelled ones (a run stays within one month)."""
    accepted = Counter(email.workspace for email in ledger.accepted if not email.cancelled_at)
    for workspace in {*accepted, *snapshot.usage}:
        used = snapshot.usage.get(workspace, 0)
        if accepted[workspace] != used:
            yield f"{workspace} has a used quota of {used}, but {accepted[workspace]} emails were accepted"


def _check_webhooks(snapshot: DatabaseSnapshot, ledger: Ledger) -> Iterator[str]:
    """Each subscribed event reached its endpoint at least once or was given up, always with the same bytes."""
    requests = defaultdict(list)
    for request in ledger.requests:
        requests[request.path, request.event_id].append(request)
    deliveries = {(row.url.partition("/hook")[2], wire_id(row.event_id, "evt_")): row for row in snapshot.deliveries}
    paths = {endpoint.path.partition("/hook")[2]: endpoint for endpoint in ledger.endpoints}
    for tail, endpoint in paths.items():
        for event in snapshot.events:
            if wire_id(event.workspace_id, "ws_") != endpoint.workspace or event.kind not in endpoint.kinds:
                continue
            event_id = wire_id(event.id, "evt_")
            row = deliveries.get((tail, event_id))
            yield from _check_webhook_delivery(endpoint.path, event_id, row, requests[endpoint.path, event_id])
    known = {wire_id(event.id, "evt_") for event in snapshot.events}
    for (path, event_id), same in requests.items():
        if event_id not in known:
            yield f"{path} received {event_id}, which does not exist"
        if len({request.body for request in same}) > 1:
            yield f"{path} received {event_id} with different bodies"
        if any(request.clock_skew_seconds > TOLERANCE_SECONDS for request in same):
            yield f"{path} would reject {event_id}: its signed timestamp is outside the tolerance"


def _check_webhook_delivery(path: str, event_id: str, row: Any, requests: list[Any]) -> Iterator[str]:
    if row is None:
        yield f"{path} has no delivery of {event_id}"
        return
    was_accepted = any(request.status and 200 <= request.status < 300 for request in requests)
    if row.status == "pending":
        yield f"the delivery of {event_id} to {path} is still pending"
    if row.status == "succeeded" and not was_accepted:
        yield f"{path} never answered 2xx to {event_id}, but its delivery is succeeded"


def _check_bounces(snapshot: DatabaseSnapshot, ledger: Ledger) -> Iterator[str]:
    """A bounce that the inbound server acknowledged with a 250 is on its recipient's timeline exactly once."""
    bounces = Counter(wire_id(event.recipient_id) for event in snapshot.events if event.kind == "bounced")
    for recipient_id in ledger.reports:
        if bounces[recipient_id] != 1:
            yield f"an acknowledged bounce of {recipient_id} has {bounces[recipient_id]} events"


def _check_received(snapshot: DatabaseSnapshot, ledger: Ledger) -> Iterator[str]:
    """A message that the inbound server acknowledged with a 250 is one received email of its workspace, with one event.

    Hosts repeat a message until it is acknowledged, so that no other message is stored. Messages are identified by
    their bytes: one that could not be read has no Message-ID.
    """
    found, events = defaultdict(list), Counter()
    for event in snapshot.events:
        if event.kind == "received":
            events[event.id, event.workspace_id, event.payload["id"]] += 1
    for row in snapshot.received:
        key = row.event_id, row.workspace_id, wire_id(row.id, "inb_")
        state = wire_id(row.workspace_id, "ws_"), row.status, events.pop(key, 0)
        found[bytes(row.sha256).hex(), row.recipient].append(state)
    for message in ledger.received.values():
        became = found.pop((message.digest, message.recipient), [])
        if became != [(message.workspace, "processed", 1)]:
            name = f"{message.message_id} to {message.recipient}"
            yield f"the acknowledged message {name} of {message.workspace} became {became}"
    yield from (f"a message to {recipient} was never acknowledged: {rows}" for (_, recipient), rows in found.items())
    yield from (f"the event {wire_id(event, 'evt_')} is of no received email" for event, *_ in events)


def _check_isolation(snapshot: DatabaseSnapshot, ledger: Ledger) -> Iterator[str]:
    """No data of one workspace reaches another: each message and request has only its own workspace's marker."""
    owners = {wire_id(row.id): wire_id(row.workspace_id, "ws_") for row in snapshot.recipients}
    for message in ledger.messages:
        workspace = owners.get(_recipient_id(message), "")
        yield from _check_markers(f"a message for {message.recipient}", message.source, workspace, ledger)
    endpoints = {endpoint.path: endpoint.workspace for endpoint in ledger.endpoints}
    for request in ledger.requests:
        workspace = endpoints.get(request.path, "")
        yield from _check_markers(f"a request to {request.path}", request.body, workspace, ledger)
        json.loads(request.body)


def _check_markers(subject: str, data: bytes, workspace: str, ledger: Ledger) -> Iterator[str]:
    for owner, marker in ledger.markers.items():
        if (marker.encode() in data) != (owner == workspace):
            yield f"{subject} of {workspace} {'has' if owner != workspace else 'lacks'} the marker of {owner}"
