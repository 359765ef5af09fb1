"""Emails to domains that this installation receives: over its inbound server, and no others to a private address."""

import asyncio

import pytest

from domains.received_domains import ReceivedDomains
from emails.models import Recipient
from receiving.models import ReceivedEmail
from tests.conftest import Api, make_account, make_domain, make_key
from tests.core.lib.nameserver import NameServer
from tests.emails.builders import send
from tests.interfaces.inbound.fixtures import run_inbound
from tests.receiving.builders import make_route, process_received, receive_for
from tests.sending_process import send_everything

pytestmark = pytest.mark.django_db(transaction=True)


def test_an_email_to_a_received_domain_arrives_and_its_answer_too(alice, receiving, settings):
    bob = make_account("bob")
    receive_for(make_domain(bob.workspace, "bob.example"))
    make_route(bob.workspace, domain="bob.example")
    api = Api(make_key(alice.workspace))
    private = {"A": ["10.0.0.1"]}
    zones = {name: {"MX": ["10 mx.inside.example."]} for name in ("bob.example", "other.example")}
    with NameServer({**zones, "mx.inside.example": private}) as dns, run_inbound() as port:
        settings.DNS_SERVERS, settings.DELIVERY_TRANSPORT = [dns.address], "direct"
        settings.RECEIVING_SERVER = "127.0.0.1", port.number
        send(api, to=["x@bob.example", "x@other.example"], replyTracking=True)
        send_everything()
    states = dict(Recipient.objects.values_list("address", "state"))
    assert states == {"x@bob.example": "delivered", "x@other.example": "queued"}
    assert Recipient.objects.get(address="x@other.example").reason == "target_refused"
    process_received()
    received = Api(make_key(bob.workspace)).get("/inbound/emails").json()["data"]
    assert [(email["recipient"], email["from"]["email"]) for email in received] == [
        ("x@bob.example", "hi@alice.example")
    ]
    assert received[0]["replyTo"][0]["email"].startswith("r-")
    assert ReceivedEmail.objects.get().message.authentication["dkim"][0]["domain"] == "alice.example"


def test_the_names_are_those_of_active_domains(receiving, settings):
    domains = ReceivedDomains()
    assert asyncio.run(domains.includes("alice.example"))
    assert asyncio.run(domains.includes("in.demo.example"))
    assert not asyncio.run(domains.includes("bob.example"))
