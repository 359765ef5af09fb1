"""Receiving domains, routes and messages of the tests."""

from datetime import UTC, datetime
from typing import Any

from domains.models import Domain, ReceivingDomain
from receiving.models import InboundRoute, ReceivedEmail
from receiving.routing import decide_recipient
from receiving.services import create_route
from receiving.storing import Arrival, store_message
from workspaces.models import Workspace

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
