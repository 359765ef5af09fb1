"""The auditor finds what is planted: each test breaks one thing in books that are in order."""

import json
import time
from collections import namedtuple
from dataclasses import replace
from uuid import UUID

import pytest

from tests.audit.auditor import Books, examine, wire_id
from tests.audit.ledger import Copy, Endpoint, Ledger, Post, Sent, Suppressed

# The rows of the auditor's queries.
Email = namedtuple("Email", "id workspace_id status")
Recipient = namedtuple("Recipient", "id email_id workspace_id address state finished_at status is_pending")
Event = namedtuple("Event", "id email_id recipient_id kind payload workspace_id")
Delivery = namedtuple("Delivery", "event_id status url workspace_id kind is_test")

OURS, THEIRS, EMAIL, RECIPIENT = (UUID(int=number) for number in (1, 2, 3, 4))
WORKSPACE, OTHER = wire_id(OURS, "ws_"), wire_id(THEIRS, "ws_")
PATH = "/hook-aardvark"


def copy(recipient="ada@example.com", body="aardvark", of=RECIPIENT, at=100.0):
    return Copy.of(recipient, f"Message-ID: <{wire_id(of)}@x.example>\r\n\r\n{body}".encode(), at)


def event(number, kind, recipient=RECIPIENT, **payload):
    return Event(UUID(int=number), EMAIL, recipient, kind, payload, OURS)


def post(number=11, status=200, body="aardvark", off=0.0):
    return Post(PATH, wire_id(UUID(int=number), "evt_"), json.dumps(body).encode(), status, off)


@pytest.fixture
def books():
    return Books(
        emails=[Email(EMAIL, OURS, "sent")],
        recipients=[Recipient(RECIPIENT, EMAIL, OURS, "ada@example.com", "sent", time.time(), "sent", False)],
        events=[event(10, "queued", None), event(11, "sent")],
        deliveries=[Delivery(UUID(int=11), "succeeded", f"http://h{PATH}", OURS, "sent", False)],
        usage={WORKSPACE: 1},
    )


@pytest.fixture
def ledger():
    return Ledger(
        sent=[Sent(wire_id(EMAIL), WORKSPACE, ("ada@example.com",))],
        endpoints=[Endpoint(WORKSPACE, PATH, frozenset({"sent"}))],
        copies=[copy()],
        posts=[post()],
        marks={WORKSPACE: "aardvark", OTHER: "zebrafish"},
    )


def found(books, ledger):
    return list(examine(books, ledger, grace_seconds=5))


def test_books_in_order_are_found_in_order(books, ledger):
    assert found(books, ledger) == []


def with_recipient(books, **changes):
    return replace(books, recipients=[books.recipients[0]._replace(**changes)])


# ruff: noqa: E501 - one row a breach
BROKEN = {
    "a lost email": (lambda b: replace(b, emails=[], recipients=[], events=[]), "is not there"),
    "an email of nobody": (lambda b: replace(b, emails=[*b.emails, Email(UUID(int=9), OURS, None)]), "nobody was told"),
    "a recipient without an end": (lambda b: with_recipient(b, is_pending=True), "is not finished"),
    "another recipient": (lambda b: with_recipient(b, address="eve@example.com"), "has the recipients"),
    "a state without a history": (lambda b: with_recipient(b, state="delivered"), "ends at sent"),
    "a history that is no path": (lambda b: replace(b, events=[*b.events, event(12, "failed"), event(13, "sent")]), "sent after failed"),
    "an event told twice": (lambda b: replace(b, events=[*b.events, event(12, "sent")]), "2 events sent"),
    "a status of its own": (lambda b: replace(b, emails=[Email(EMAIL, OURS, "failed")]), "its recipients are"),
    "a free email": (lambda b: replace(b, usage={}), "has used 0"),
    "an email paid twice": (lambda b: replace(b, usage={WORKSPACE: 2}), "has used 2"),
    "an event without a delivery": (lambda b: replace(b, deliveries=[]), "has no delivery"),
    "a delivery without an end": (lambda b: replace(b, deliveries=[b.deliveries[0]._replace(status="pending")]), "neither told"),
}  # fmt: skip


@pytest.mark.parametrize("case", BROKEN)
def test_it_finds_in_the_database(books, ledger, case):
    act, words = BROKEN[case]
    assert any(words in sentence for sentence in found(act(books), ledger))


def cancelled(ledger):
    ledger.sent[0].cancelled_at = 1.0


OUTSIDE = {
    "a copy too many": (lambda one: one.copies.append(copy()), "got 2 copies"),
    "a copy that never came": (lambda one: one.copies.clear(), "got nothing"),
    "a copy at a stranger's": (lambda one: one.copies.append(copy("eve@example.com")), "went to"),
    "a copy of nothing": (lambda one: one.copies.append(copy(of=EMAIL)), "belongs to nobody"),
    "a copy that differs": (lambda one: one.copies.append(copy(body="aardvark!")), "differ"),
    "a copy after a cancel": (cancelled, "was cancelled"),
    "a copy after a suppression": (lambda one: one.suppressed.append(Suppressed(WORKSPACE, "Ada@example.com", 90.0)), "10.0 s after"),
    "a success that nobody saw": (lambda one: one.posts.clear(), "never answered 2xx"),
    "a success that was a failure": (lambda one: one.posts.__setitem__(0, post(status=500)), "never answered 2xx"),
    "an event of nothing": (lambda one: one.posts.append(post(99)), "never happened"),
    "an event in other words": (lambda one: one.posts.append(post(body="aardvark, too")), "different words"),
    "a post of another day": (lambda one: one.posts.__setitem__(0, post(off=3600.0)), "another time"),
    "a bounce that was lost": (lambda one: one.reports.add(wire_id(RECIPIENT)), "told 0 times"),
    "a copy with foreign bytes": (lambda one: one.copies.__setitem__(0, copy(body="aardvark zebrafish")), "holds the mark"),
    "a post with foreign bytes": (lambda one: one.posts.__setitem__(0, post(body="zebrafish")), "lacks the mark"),
    "an id given twice": (lambda one: one.sent.append(one.sent[0]), "two different requests"),
}  # fmt: skip


@pytest.mark.parametrize("case", OUTSIDE)
def test_it_finds_from_outside(books, ledger, case):
    act, words = OUTSIDE[case]
    act(ledger)
    assert any(words in sentence for sentence in found(books, ledger))


def test_a_second_copy_that_the_timeline_tells_of_is_no_finding(books, ledger):
    ledger.copies.append(copy())
    told = event(12, "deferred", reason="worker_lost")
    assert found(replace(books, events=[books.events[0], told, books.events[1]]), ledger) == []


def test_a_copy_that_began_before_the_suppression_is_no_finding(books, ledger):
    ledger.suppressed.append(Suppressed(WORKSPACE, "ada@example.com", 97.0))
    assert found(books, ledger) == []
