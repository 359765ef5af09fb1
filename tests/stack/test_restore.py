"""A restore as in docs/backup.md, with a reader of the event feed that keeps its cursor."""

from typing import Any
from urllib.parse import quote, urlsplit

import psycopg
import pytest

from tests.stack.stack import Stack, wait_for

pytestmark = pytest.mark.stack

PROCESSES = ("inbox", "worker", "web")


def read_events(stack: Stack, after: str = "") -> tuple[list[dict[str, Any]], str]:
    """Return all events after a cursor, and the last cursor."""
    events: list[dict[str, Any]] = []
    has_more = True
    while has_more:
        page = stack.call("GET", f"/events?limit=100&after={quote(after)}").body
        events, after, has_more = events + page["data"], page["cursor"], page["hasMore"]
    return events, after


def send(stack: Stack, count: int) -> None:
    for _ in range(count):
        assert stack.send().status == 202
    wait_for(stack.all_delivered, seconds=60, what="all emails are delivered")


def wait_for_feed(stack: Stack) -> None:
    """Wait until every event is in the feed."""
    missing = (
        "SELECT count(*) FROM emails_event e WHERE NOT EXISTS (SELECT FROM events_feedentry WHERE number = e.number)"
    )
    wait_for(lambda: stack.query(missing) == [(0,)], seconds=60, what="the sequencer")


def execute(stack: Stack, *statements: str) -> None:
    server, _, _ = stack.database.rpartition("/")
    with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement)


def test_a_reader_misses_no_event_of_a_restored_database(stack):
    name = urlsplit(stack.database).path[1:]
    stack.start(*PROCESSES)
    send(stack, 3)
    wait_for_feed(stack)
    stack.stop(PROCESSES)
    execute(stack, f"CREATE DATABASE {name}_backup TEMPLATE {name}")
    stack.start(*PROCESSES)
    send(stack, 20)
    wait_for_feed(stack)
    before, cursor = read_events(stack)
    stack.stop(PROCESSES)

    execute(stack, f"DROP DATABASE {name} WITH (FORCE)", f"ALTER DATABASE {name}_backup RENAME TO {name}")
    stack.manage("migrate", "--noinput")
    stack.manage("hold")
    stack.start(*PROCESSES)
    stack.manage("release")
    send(stack, 5)
    wait_for_feed(stack)
    after, _ = read_events(stack, cursor)
    everything, _ = read_events(stack)
    read_before = {event["id"] for event in before}
    assert [event["id"] for event in after] == [event["id"] for event in everything if event["id"] not in read_before]
    assert [event["type"] for event in after].count("email.delivered") == 5
