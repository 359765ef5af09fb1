"""The events of a workspace through the Python library, against the running service."""

import json

import pytest
from postrider_client import Postrider, TimedOut, ValidationError

from tests.clients.faulty import HANG, Answer, proxy
from tests.clients.messages import latest_cursor, send_email

pytestmark = pytest.mark.stack

EVENT = {
    "id": "evt_1",
    "type": "email.sent",
    "event": "sent",
    "createdAt": "2026-11-21T06:20:00.412Z",
    "cursor": "next",
    "data": {"to": "ada@example.com"},
}


def find(events, email_id):
    return next(event for event in events if event.data["emailId"] == email_id)


def test_a_stream_yields_events_while_it_is_open_and_the_list_has_the_same_ones(client):
    cursor = latest_cursor(client)
    stream = client.events.stream(after=cursor, types=["queued", "delivered"])
    first = send_email(client)
    queued = find(stream, first)
    delivered = find(stream, first)
    second = find(stream, send_email(client))
    stream.close()
    assert (queued.event, delivered.type, second.event) == ("queued", "email.delivered", "queued")
    assert delivered.created_at > queued.created_at
    listed = list(client.events.list(after=cursor, types=["queued", "delivered"], limit=1))
    assert [queued, delivered, second] == [event for event in listed if event in (queued, delivered, second)]
    assert find(client.events.list(after=queued.cursor), first).event != "queued"


def test_an_invalid_cursor_of_a_stream_is_an_error(client):
    with pytest.raises(ValidationError):
        next(client.events.stream(after="nonsense"))


def test_an_incomplete_line_at_the_end_of_a_stream_is_no_event(service):
    body = f": waiting\n\nid: next\ndata: {json.dumps(EVENT)}\n\ndata: {{".encode()
    answer = Answer(200, {"Content-Type": "text/event-stream"}, body)
    with proxy(service.stack.url, answer) as server, Postrider(service.stack.key, base_url=server.url) as client:
        (event,) = client.events.stream()
    assert (event.raw, event.cursor) == (EVENT, "next")


def test_a_silent_stream_times_out(service):
    with proxy(service.stack.url, HANG) as server:
        client = Postrider(service.stack.key, base_url=server.url, timeout_seconds=0.2, max_retries=0)
        with pytest.raises(TimedOut):
            next(client.events.stream())
        client.close()
