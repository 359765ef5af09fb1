"""The receiver of a recipient: from the mail host, else from the domain of the mailbox."""

from dataclasses import replace

import pytest

from emails.models import Recipient
from emails.sending.emails_work import EmailQueueWork
from tests.conftest import Api
from tests.core.delivery.relaying import relay, run
from tests.core.delivery.scripted import ScriptedServer, StubLease
from tests.emails.builders import LATER, OK, PARKED, UNKNOWN_USER, accept, deliver, make_ready, send
from tests.rows import each

pytestmark = pytest.mark.django_db


def stored() -> str | None:
    return Recipient.objects.get().receiver


@each("outcome", [OK, LATER, UNKNOWN_USER])
def test_it_is_stored_with_the_outcome_of_an_attempt(workspace, outcome):
    accept(workspace)
    assert stored() is None
    deliver(replace(outcome, receiver="google"))
    assert stored() == "google"


def test_the_latest_one_that_is_known_stays(workspace):
    accept(workspace)
    for receiver in ("google", "", "mimecast", ""):
        make_ready()
        deliver(replace(LATER, receiver=receiver))
    assert stored() == "mimecast"


def test_a_message_that_waits_has_none(workspace):
    accept(workspace)
    deliver(PARKED)
    assert stored() is None


@each(("address", "receiver"), [
    ("ada@gmail.com", "google"), ("ada@Hotmail.fr", "outlook"), ("ada@acme.example", None),
])  # fmt: skip
def test_a_relay_tells_it_by_the_domain_of_the_mailbox_only(workspace, address, receiver):
    accept(workspace, address)
    server = ScriptedServer()
    work = EmailQueueWork(relay(server), sessions=10)
    jobs = work.claim(10).jobs

    async def perform():
        async with server:
            work._transport = relay(server)
            return [await work.perform(job, StubLease()) for job in jobs]

    work.record(run(perform()))
    assert stored() == receiver


def test_the_api_shows_it(api: Api):
    email_id = send(api)
    assert api.get(f"/emails/{email_id}").json()["recipients"][0]["receiver"] is None
    deliver(replace(OK, receiver="acme.example"))
    assert api.get(f"/emails/{email_id}").json()["recipients"][0]["receiver"] == "acme.example"
