"""The auditor finds violations: each test breaks one thing in a consistent snapshot and ledger."""

import json
import time
from collections import namedtuple
from dataclasses import replace
from uuid import UUID

from tests.audit.auditor import DatabaseSnapshot, find_violations, wire_id
from tests.audit.ledger import (
    AcceptedEmail,
    Ledger,
    ReceivedMessage,
    RegisteredEndpoint,
    SuppressedAddress,
    WebhookRequest,
)

# The rows of the auditor's queries.
Email = namedtuple("Email", "id workspace_id status")
Recipient = namedtuple("Recipient", "id email_id workspace_id address state finished_at status is_pending")
Event = namedtuple("Event", "id email_id recipient_id kind payload workspace_id")
Delivery = namedtuple("Delivery", "event_id status url workspace_id kind is_test")

OURS, THEIRS, EMAIL, RECIPIENT = (UUID(int=number) for number in (1, 2, 3, 4))
WORKSPACE, OTHER = wire_id(OURS, "ws_"), wire_id(THEIRS, "ws_")
PATH = "/hook-aardvark"


def build_message(recipient="ada@example.com", body="aardvark", of=RECIPIENT, at=100.0, transport=""):
    source = f"Message-ID: <{wire_id(of)}@x.example>\r\n\r\n{body}".encode()
    return ReceivedMessage.of(recipient, source, at, transport=transport)


def event(number, kind, recipient=RECIPIENT, **payload):
    return Event(UUID(int=number), EMAIL, recipient, kind, payload, OURS)


def build_request(number=11, status=200, body="aardvark", off=0.0):
    return WebhookRequest(PATH, wire_id(UUID(int=number), "evt_"), json.dumps(body).encode(), status, off)


def make_snapshot():
    return DatabaseSnapshot(
        emails=[Email(EMAIL, OURS, "sent")],
        recipients=[Recipient(RECIPIENT, EMAIL, OURS, "ada@example.com", "sent", time.time(), "sent", False)],
        events=[event(10, "queued", None), event(11, "sent")],
        deliveries=[Delivery(UUID(int=11), "succeeded", f"http://h{PATH}", OURS, "sent", False)],
        usage={WORKSPACE: 1},
    )


def make_ledger():
    return Ledger(
        accepted=[AcceptedEmail(wire_id(EMAIL), WORKSPACE, ("ada@example.com",))],
        endpoints=[RegisteredEndpoint(WORKSPACE, PATH, frozenset({"sent"}))],
        messages=[build_message()],
        requests=[build_request()],
        markers={WORKSPACE: "aardvark", OTHER: "zebrafish"},
    )


def violations(snapshot, ledger):
    return list(find_violations(snapshot, ledger, grace_seconds=5))


def test_a_consistent_snapshot_has_no_violations():
    assert violations(make_snapshot(), make_ledger()) == []


def with_recipient(snapshot, **changes):
    return replace(snapshot, recipients=[snapshot.recipients[0]._replace(**changes)])


# ruff: noqa: E501 - one row per violation
BROKEN_SNAPSHOT = {
    "a lost email": (lambda b: replace(b, emails=[], recipients=[], events=[]), "is missing"),
    "an email without an answer": (lambda b: replace(b, emails=[*b.emails, Email(UUID(int=9), OURS, None)]), "never answered with a 2xx"),
    "an unfinished recipient": (lambda b: with_recipient(b, is_pending=True), "is not finished"),
    "a different recipient": (lambda b: with_recipient(b, address="eve@example.com"), "has the recipients"),
    "a state without an event": (lambda b: with_recipient(b, state="delivered"), "ends at sent"),
    "an invalid transition": (lambda b: replace(b, events=[*b.events, event(12, "failed"), event(13, "sent")]), "sent after failed"),
    "a duplicate event": (lambda b: replace(b, events=[*b.events, event(12, "sent")]), "2 events sent"),
    "an inconsistent status": (lambda b: replace(b, emails=[Email(EMAIL, OURS, "failed")]), "its recipients are"),
    "an uncounted email": (lambda b: replace(b, usage={}), "a used quota of 0"),
    "an email counted twice": (lambda b: replace(b, usage={WORKSPACE: 2}), "a used quota of 2"),
    "an event without a delivery": (lambda b: replace(b, deliveries=[]), "has no delivery"),
    "a pending delivery": (lambda b: replace(b, deliveries=[b.deliveries[0]._replace(status="pending")]), "still pending"),
}  # fmt: skip


def test_a_violation_in_the_database_is_found():
    for case, (change, expected) in BROKEN_SNAPSHOT.items():
        assert expected in "\n".join(violations(change(make_snapshot()), make_ledger())), case


def cancel(ledger):
    ledger.accepted[0].cancelled_at = 1.0


BROKEN_LEDGER = {
    "a duplicate message": (lambda one: one.messages.append(build_message()), "received 2 messages"),
    "copies by two transports": (lambda one: one.messages.append(build_message(transport="relay")), "received copies by"),
    "a missing message": (lambda one: one.messages.clear(), "received no message"),
    "a message to another address": (lambda one: one.messages.append(build_message("eve@example.com")), "went to"),
    "a message without a recipient": (lambda one: one.messages.append(build_message(of=EMAIL)), "unknown recipient"),
    "a different message": (lambda one: one.messages.append(build_message(body="aardvark!")), "different messages"),
    "a message after a cancel": (cancel, "a cancelled email"),
    "a message after a suppression": (lambda one: one.suppressions.append(SuppressedAddress(WORKSPACE, "Ada@example.com", 90.0)), "10.0 s after"),
    "a success without a request": (lambda one: one.requests.clear(), "never answered 2xx"),
    "a success with a failed request": (lambda one: one.requests.__setitem__(0, build_request(status=500)), "never answered 2xx"),
    "an unknown event": (lambda one: one.requests.append(build_request(99)), "does not exist"),
    "an event with another body": (lambda one: one.requests.append(build_request(body="aardvark, too")), "different bodies"),
    "a request with an old timestamp": (lambda one: one.requests.__setitem__(0, build_request(off=3600.0)), "outside the tolerance"),
    "a lost bounce": (lambda one: one.reports.add(wire_id(RECIPIENT)), "has 0 events"),
    "a message with another workspace's data": (lambda one: one.messages.__setitem__(0, build_message(body="aardvark zebrafish")), "has the marker"),
    "a request with another workspace's data": (lambda one: one.requests.__setitem__(0, build_request(body="zebrafish")), "lacks the marker"),
    "an id returned twice": (lambda one: one.accepted.append(one.accepted[0]), "two different requests"),
}  # fmt: skip


def test_a_violation_in_the_ledger_is_found():
    for case, (change, expected) in BROKEN_LEDGER.items():
        ledger = make_ledger()
        change(ledger)
        assert expected in "\n".join(violations(make_snapshot(), ledger)), case


def test_a_second_message_after_an_ambiguous_attempt_is_allowed():
    snapshot, ledger = make_snapshot(), make_ledger()
    ledger.messages.append(build_message())
    ambiguous = event(12, "deferred", reason="worker_lost")
    assert violations(replace(snapshot, events=[snapshot.events[0], ambiguous, snapshot.events[1]]), ledger) == []


def test_a_delivery_that_began_before_the_suppression_is_allowed():
    ledger = make_ledger()
    ledger.suppressions.append(SuppressedAddress(WORKSPACE, "ada@example.com", 97.0))
    assert violations(make_snapshot(), ledger) == []
