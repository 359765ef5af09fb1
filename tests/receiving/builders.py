"""Receiving domains, routes and messages of the tests."""

import asyncio
from datetime import UTC, datetime
from typing import Any

from core.lib.worker.leases import Lease
from core.workspaces.models import Workspace
from domains.models import Domain, ReceivingDomain
from receiving.arrival.routing import decide_recipient
from receiving.arrival.storing import Arrival, store_message
from receiving.models import InboundRoute, ReceivedEmail
from receiving.processing import ReadResult
from receiving.received_work import ReceivedQueueWork
from receiving.services import create_route

PLAIN = b"""From: Ada Lovelace <ada@example.com>\r
To: Support <support@alice.example>\r
Subject: Where is my order?\r
Date: Fri, 20 Nov 2026 09:12:29 +0000\r
Message-ID: <one@example.com>\r
\r
Hello,\r
where is my order?\r
"""


def receive_for(domain: Domain) -> ReceivingDomain:
    """Make a domain one that is received."""
    return ReceivingDomain.objects.create(
        domain=domain, workspace=domain.workspace, name=domain.name, status="active", proven_at=datetime.now(UTC)
    )


def make_route(workspace: Workspace, *, match: str = "*", domain: str = "alice.example", **values: Any) -> InboundRoute:
    return create_route(workspace, values={"name": match, "match": match, "domain": domain, **values})


def arrive(source: bytes = PLAIN, to: str = "support@alice.example", **envelope: Any) -> ReceivedEmail:
    """Store a message for one recipient, as the SMTP server does, without reading it."""
    values = {"envelope_from": "ada@example.com", "remote_ip": "192.0.2.7", "helo": "mx.example.com", **envelope}
    decision = decide_recipient(to, sender=values["envelope_from"])
    assert decision.recipient, decision.reply
    assert decision.is_accepted, decision.reply
    return ReceivedEmail.objects.get(id=store_message(Arrival(source, **values), [decision.recipient]))


def process_received() -> None:
    """Read all stored messages, as a worker does."""
    work = ReceivedQueueWork()
    while jobs := work.claim(16).jobs:

        async def perform(batch: Any = jobs) -> list[ReadResult]:
            return [await work.perform(job, Lease(0)) for job in batch]

        work.record(asyncio.run(perform()))


def receive(source: bytes = PLAIN, to: str = "support@alice.example", **envelope: Any) -> ReceivedEmail:
    """Store and read a message."""
    email = arrive(source, to, **envelope)
    process_received()
    return ReceivedEmail.objects.select_related("message").get(id=email.id)


def with_field(field: str, source: bytes = PLAIN) -> bytes:
    """Return a message with another header field."""
    return field.encode() + b"\r\n" + source
