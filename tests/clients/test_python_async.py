"""The asynchronous client of the Python library against the running service."""

import asyncio
import os
import subprocess
import sys
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from functools import wraps
from uuid import uuid4

import postrider_client
import pytest
from postrider_client import AsyncPostrider

from tests.clients.cli import LIBRARY
from tests.clients.faulty import HANG, LOSE, RETRY_CASES, problem, proxy, relay
from tests.clients.messages import someone

pytestmark = pytest.mark.stack

LIMIT_SECONDS = 60
WITHOUT_HTTPX = """
import sys
sys.modules["httpx"] = None
from postrider_client import *
assert Postrider("pr_x", base_url="http://127.0.0.1")
from postrider_client import AsyncPostrider
"""


def asynchronous(test):
    @wraps(test)
    def run(**fixtures):
        asyncio.run(asyncio.wait_for(test(**fixtures), LIMIT_SECONDS))

    return run


def connect(service, url=None, **options):
    return AsyncPostrider(service.stack.key, base_url=url or service.stack.url, **options)


def new_email(**fields):
    return {"from_": "hello@demo.example", "to": someone(), "subject": "Hello", "text": "Hi", **fields}


async def until(condition):
    while not condition():
        await asyncio.sleep(0.01)


async def find(events, email_id):
    return await anext(event async for event in events if event.data["emailId"] == email_id)


@asynchronous
async def test_emails_are_sent_at_the_same_time_and_listed_over_several_pages(service):
    tag = f"list-{uuid4()}"
    later = datetime.now(UTC) + timedelta(hours=1)
    async with connect(service) as client:
        sends = [client.emails.send(**new_email(tags=[tag], scheduled_for=later)) for _ in range(5)]
        accepted = await asyncio.gather(*sends)
        page = await client.emails.list(tag=tag, limit=2, page=2).fetch()
        assert (page.total, page.page, page.limit, len(page.data)) == (5, 2, 2, 2)
        listed = [email.id async for email in client.emails.list(tag=tag, limit=2)]
        assert sorted(listed) == sorted(email.id for email in accepted)
        assert (await client.emails.cancel(listed[0])).status == "cancelled"
        assert (await client.emails.get(listed[0])).tags == [tag]


@asynchronous
async def test_a_stream_yields_events_while_it_is_open_and_the_list_has_the_same_ones(service):
    async with connect(service) as client:
        cursor = (await client.events.list(after="latest").fetch()).cursor
        async with aclosing(client.events.stream(after=cursor, types=["queued", "delivered"])) as stream:
            first = (await client.emails.send(**new_email())).id
            queued, delivered = await find(stream, first), await find(stream, first)
            second = await find(stream, (await client.emails.send(**new_email())).id)
        listed = [event async for event in client.events.list(after=cursor, types=["queued", "delivered"], limit=1)]
    assert (queued.event, delivered.type, second.event) == ("queued", "email.delivered", "queued")
    assert [queued, delivered, second] == [event for event in listed if event in (queued, delivered, second)]


@asynchronous
async def test_an_email_whose_response_is_lost_is_sent_once(service):
    tag = f"lost-{uuid4()}"
    with proxy(service.stack.url, LOSE, problem(503, "service_unavailable")) as faulty:
        async with connect(service, faulty.url) as client:
            accepted = await client.emails.send(**new_email(tags=[tag]))
            assert len(faulty.seen) == 3
            assert len({headers["Idempotency-Key"] for headers in faulty.seen}) == 1
            assert [email.id async for email in client.emails.list(tag=tag)] == [accepted.id]


@asynchronous
async def test_errors_are_retried_or_raised(service):
    async def outcome_of(fault):
        """Return the number of requests and the name of the error."""
        error = None
        with proxy(service.stack.url, fault) as faulty:
            async with connect(service, faulty.url) as client:
                try:
                    assert (await client.me()).workspace.id
                except postrider_client.PostriderError as raised:
                    error = type(raised).__name__
        return len(faulty.seen), error

    found = await asyncio.gather(*(outcome_of(fault) for fault, _, _ in RETRY_CASES.values()))
    assert dict(zip(RETRY_CASES, found, strict=True)) == {
        name: (requests, error) for name, (_, requests, error) in RETRY_CASES.items()
    }


@asynchronous
async def test_a_silent_server_times_out(service):
    with proxy(service.stack.url, HANG, HANG) as faulty:
        async with connect(service, faulty.url, timeout_seconds=0.2, max_retries=1) as client:
            with pytest.raises(postrider_client.TimedOut):
                await client.me()
        assert len(faulty.seen) == 2


@asynchronous
async def test_a_cancelled_request_closes_its_connection(service):
    with proxy(service.stack.url, HANG) as faulty, relay(faulty.url) as relayed:
        async with connect(service, relayed.url) as client:
            waiting = asyncio.create_task(client.me())
            await until(lambda: faulty.seen)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await until(lambda: relayed.ended == 1)


@asynchronous
async def test_a_cancelled_stream_closes_its_connection(service):
    with relay(service.stack.url) as relayed:
        async with connect(service, relayed.url) as client, connect(service) as sender:
            cursor = (await sender.events.list(after="latest").fetch()).cursor
            email = await sender.emails.send(**new_email())
            seen = []
            reading = asyncio.create_task(read_into(seen, client.events.stream(after=cursor)))
            await until(lambda: email.id in seen)
            assert relayed.ended == 0
            reading.cancel()
            with pytest.raises(asyncio.CancelledError):
                await reading
            await until(lambda: relayed.ended == 1)


async def read_into(seen, stream):
    async for event in stream:
        seen.append(event.data["emailId"])


@asynchronous
async def test_a_stream_that_is_left_early_closes_its_connection(service):
    with relay(service.stack.url) as relayed:
        async with connect(service, relayed.url) as client, connect(service) as sender:
            cursor = (await sender.events.list(after="latest").fetch()).cursor
            await sender.emails.send(**new_email())
            async with aclosing(client.events.stream(after=cursor)) as stream:
                await anext(stream)
            await until(lambda: relayed.ended == 1)


@asynchronous
async def test_a_closed_client_opens_new_connections(service):
    async with connect(service) as client:
        before = await client.me()
        await client.close()
        assert (await client.me()).workspace == before.workspace


@asynchronous
async def test_an_unreachable_server_is_a_failed_connection():
    async with AsyncPostrider("pr_x", base_url="http://127.0.0.1:1", max_retries=0) as client:
        with pytest.raises(postrider_client.ConnectionFailed, match="No connection"):
            await client.me()


def test_without_httpx_only_the_asynchronous_client_is_missing():
    command = [sys.executable, "-c", WITHOUT_HTTPX]
    environment = {**os.environ, "PYTHONPATH": str(LIBRARY)}
    failed = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert "ImportError: AsyncPostrider requires httpx: pip install 'httpx>=0.28,<1'" in failed.stderr
    assert "line 6, in <module>" in failed.stderr
