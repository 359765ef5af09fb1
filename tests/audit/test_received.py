"""The auditor of received email finds violations: each test breaks one thing in a consistent view."""

import hashlib
import json
from dataclasses import replace

import pytest

from tests.audit.ledger import AcknowledgedMessage, WebhookRequest
from tests.audit.received import RECEIVED, REPLIED, WorkspaceView, find_received_violations

SOURCE = b"Subject: Hi\r\n\r\nHello\r\n"
EMAIL = {
    "id": "inb_1",
    "messageId": "<1@host.example>",
    "recipient": "a@in.demo.example",
    "status": "processed",
    "blockedReason": None,
    "parseErrors": [],
    "size": len(SOURCE),
    "from": {"email": "ada@example.com", "name": ""},
    "subject": "Hi",
    "replyToEmail": {"emailId": "e1"},
}
DIGEST = hashlib.sha256(SOURCE).hexdigest()
UNREADABLE = {"status": "unreadable", "messageId": None, "from": None, "subject": "", "parseErrors": ["Not read"]}
EVENTS = [
    {"id": "evt_1", "type": RECEIVED, "data": {"id": "inb_1", "text": "Hello\n"}},
    {"id": "evt_2", "type": REPLIED, "data": {"inboundId": "inb_1"}},
]


def build_request(event, status=200):
    return WebhookRequest("/hook", event["id"], json.dumps(event).encode(), status)


@pytest.fixture
def acknowledged():
    facts = {"sender": "ada@example.com", "subject": "Hi", "text": "Hello\n", "answers": "e1", "is_forwarded": True}
    return [AcknowledgedMessage("<1@host.example>", "a@in.demo.example", "ws_1", len(SOURCE), DIGEST, **facts)]


@pytest.fixture
def view():
    forwards = {"inb_1": [{"emailId": "e2", "error": None}]}
    return WorkspaceView("ws_1", [EMAIL], EVENTS, [*map(build_request, EVENTS)], {"inb_1": DIGEST}, forwards)


def test_a_consistent_view_has_no_violations(view, acknowledged):
    repeated = replace(view, requests=[build_request(EVENTS[0], 503), *view.requests, build_request(EVENTS[0])])
    for consistent in (view, repeated):
        assert list(find_received_violations(consistent, acknowledged)) == []


BROKEN = {
    "a lost message": (lambda v: replace(v, emails=[]), "is 0 received emails"),
    "a repeated row": (
        lambda v: replace(v, emails=[EMAIL, {**EMAIL, "id": "inb_2"}], digests={**v.digests, "inb_2": DIGEST}),
        "is 2 received emails",
    ),
    "a row of a message that was refused": (
        lambda v: replace(v, emails=[EMAIL, {**EMAIL, "id": "inb_2"}], digests={**v.digests, "inb_2": "0"}),
        "never acknowledged",
    ),
    "an unreadable message": (lambda v: replace(v, emails=[{**EMAIL, **UNREADABLE}]), "is unreadable"),
    "a blocked message": (
        lambda v: replace(v, emails=[{**EMAIL, "status": "blocked", "blockedReason": "not_a_reply"}]),
        "is blocked with 22 bytes: not_a_reply",
    ),
    "another sender": (lambda v: replace(v, emails=[{**EMAIL, "from": None}]), "is read as"),
    "another subject": (lambda v: replace(v, emails=[{**EMAIL, "subject": ""}]), "is read as"),
    "another text": (
        lambda v: replace(v, requests=[build_request({**EVENTS[0], "data": {"id": "inb_1", "text": ""}})]),
        "is read as",
    ),
    "a lost forward": (
        lambda v: replace(v, forwards={"inb_1": [{"emailId": None, "error": "internal_error"}]}),
        "has the forwards",
    ),
    "a second forward": (
        lambda v: replace(v, forwards={"inb_1": [*v.forwards["inb_1"], *v.forwards["inb_1"]]}),
        "has the forwards",
    ),
    "an unread message": (lambda v: replace(v, emails=[{**EMAIL, "status": "stored"}]), "is stored"),
    "a part of a message": (lambda v: replace(v, emails=[{**EMAIL, "size": 3}]), "with 3 bytes"),
    "another message": (lambda v: replace(v, digests={"inb_1": "0"}), "not with this source"),
    "no match": (lambda v: replace(v, emails=[{**EMAIL, "replyToEmail": None}]), "answers e1"),
    "no event": (lambda v: replace(v, events=EVENTS[1:]), "has 0 events email.received"),
    "a repeated event": (lambda v: replace(v, events=[*EVENTS, {**EVENTS[0], "id": "evt_3"}]), "has 2 events"),
    "an event twice in the feed": (lambda v: replace(v, events=[*EVENTS, EVENTS[0]]), "2 times"),
    "no reply": (lambda v: replace(v, events=EVENTS[:1]), "has 0 events email.replied"),
    "no request": (lambda v: replace(v, requests=v.requests[1:]), "accepted nothing as evt_1"),
    "a request that failed": (
        lambda v: replace(v, requests=[build_request(EVENTS[0], 503), v.requests[1]]),
        "accepted nothing as evt_1",
    ),
    "a second webhook event": (
        lambda v: replace(v, requests=[*v.requests, build_request({**EVENTS[0], "id": "evt_3"})]),
        "unknown event evt_3",
    ),
}


def test_a_violation_is_found(view, acknowledged):
    for case, (change, expected) in BROKEN.items():
        assert expected in "\n".join(find_received_violations(change(view), acknowledged)), case
