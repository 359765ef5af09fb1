"""Auditor of received email: compares acknowledged messages with all that a workspace can see.

It reads the list of the API, every source, the feed and the requests to the webhook endpoint, and imports nothing of
the service. Every violation is a sentence.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.audit.ledger import AcknowledgedMessage, WebhookRequest

RECEIVED, REPLIED = "email.received", "email.replied"


@dataclass(frozen=True)
class WorkspaceView:
    """Received email as a workspace sees it.

    emails: of the list. events: `received` and `replied` of the feed. requests: to its endpoint. digests: the SHA-256
    of what was received, without the fields that the service adds, of every email by id. forwards: of the emails to
    addresses that are forwarded, by id.
    """

    workspace: str
    emails: list[dict[str, Any]]
    events: list[dict[str, Any]]
    requests: list[WebhookRequest]
    digests: Mapping[str, str]
    forwards: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)


def find_received_violations(view: WorkspaceView, acknowledged: Iterable[AcknowledgedMessage]) -> Iterator[str]:
    """Each acknowledged message is one received email, with one event and one webhook event, and no other exists.

    Emails are identified by their source: one that could not be read has no Message-ID.
    """
    messages = {(one.digest, one.recipient): one for one in acknowledged if one.workspace == view.workspace}
    emails = defaultdict(list)
    for email in view.emails:
        emails[view.digests[email["id"]], email["recipient"]].append(email)
    texts = dict(_texts(view))
    for key, message in messages.items():
        yield from _check_emails(message, emails.pop(key, []), view, texts)
    for (_, recipient), found in emails.items():
        names = [(email["messageId"], email["status"]) for email in found]
        yield f"a message to {recipient} was never acknowledged, or not with this source: {names}"
    yield from _check_events(view)
    yield from _check_requests(view)


def _check_emails(
    message: AcknowledgedMessage, emails: list[dict[str, Any]], view: WorkspaceView, texts: Mapping[str, str]
) -> Iterator[str]:
    name = f"the acknowledged message {message.message_id} to {message.recipient}"
    if len(emails) != 1:
        yield f"{name} is {len(emails)} received emails"
        return
    (email,) = emails
    if (email["status"], email["size"]) != ("processed", message.size):
        reason = email["blockedReason"] or email["parseErrors"]
        yield f"{name} of {message.size} bytes is {email['status']} with {email['size']} bytes: {reason}"
    if (email["replyToEmail"] or {}).get("emailId", "") != message.answers:
        yield f"{name} answers {message.answers or 'nothing'}, but shows {email['replyToEmail']}"
    found = email["messageId"], (email["from"] or {}).get("email"), email["subject"], texts.get(email["id"])
    if found != (message.message_id, message.sender, message.subject, message.text):
        yield f"{name} is read as {found}"
    if message.is_forwarded:
        forwards = [(forward["emailId"] is not None, forward["error"]) for forward in view.forwards[email["id"]]]
        if forwards != [(True, None)]:
            yield f"{name} has the forwards {view.forwards[email['id']]}"


def _texts(view: WorkspaceView) -> Iterator[tuple[str, str]]:
    """Yield the text of each email as its webhook has it."""
    for request in view.requests:
        body = json.loads(request.body)
        if body["type"] == RECEIVED:
            yield body["data"]["id"], body["data"]["text"]


def _check_events(view: WorkspaceView) -> Iterator[str]:
    """Each email has one event, and one more if it answers an email."""
    events = Counter((event["type"], _inbound_id(event)) for event in view.events)
    for email in view.emails:
        expected = {RECEIVED: 1, REPLIED: int(email["replyToEmail"] is not None)}
        for kind, count in expected.items():
            if (found := events.pop((kind, email["id"]), 0)) != count:
                yield f"{email['id']} of {view.workspace} has {found} events {kind}, not {count}"
    yield from (f"an event {kind} of {view.workspace} is of the unknown email {id_}" for kind, id_ in events)
    ids = Counter(event["id"] for event in view.events)
    yield from (
        f"the event {id_} of {view.workspace} is in the feed {count} times" for id_, count in ids.items() if count > 1
    )


def _check_requests(view: WorkspaceView) -> Iterator[str]:
    """Each event reached the endpoint with its own id, and no other event did."""
    accepted: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for request in view.requests:
        body = json.loads(request.body)
        if body["type"] in {RECEIVED, REPLIED}:
            found = accepted[request.event_id]
            if request.status and 200 <= request.status < 300:
                found.add((body["type"], _inbound_id(body)))
    for event in view.events:
        found = accepted.pop(event["id"], set())
        if found != {(event["type"], _inbound_id(event))}:
            yield f"the endpoint of {view.workspace} accepted {found or 'nothing'} as {event['id']}"
    yield from (f"the endpoint of {view.workspace} got the unknown event {id_}" for id_ in accepted)


def _inbound_id(event: dict[str, Any]) -> str:
    data = event["data"]
    return str(data["inboundId"] if event["type"] == REPLIED else data["id"])
