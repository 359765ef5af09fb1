"""`GET /v1/admin/transports`: the operator's transports, for management keys only."""

import pytest
from django.db.models.functions import Now

from core.delivery.transports.router import TransportReport
from core.delivery.transports.transports_file import TransportRoute, Transports, TransportSpec, single_transport
from core.lib.redis_client import ask_redis
from domains.models import Domain
from emails.sending.transport_status import drain_transport, resume_transport, send_reports
from tests.conftest import Api, make_domain

pytestmark = pytest.mark.django_db
SINCE = "2026-11-20T08:12:44.102Z"


@pytest.fixture(autouse=True)
def _transports(settings):
    specs = {
        "own": TransportSpec(name="own", kind="direct", per_day=50_000, spf="ip4:192.0.2.10"),
        "relay": TransportSpec(name="relay", kind="smtp", spf="include:relay.example"),
    }
    settings.TRANSPORTS = Transports(
        specs, {"default": TransportRoute("default", ("own", "relay"))}, {"default": ("default",)}
    )
    yield
    ask_redis(settings.REDIS_URL, lambda client: client.flushdb())


def test_each_transport_has_the_state_of_the_process_that_fares_worst(platform: Api, monkeypatch):
    for process, state, error in ((1, "open", ""), (2, "paused", "535 5.7.8 Authentication failed")):
        monkeypatch.setattr("os.getpid", lambda process=process: process)
        send_reports([TransportReport("own", state, SINCE, error), TransportReport("relay", "open", SINCE)])
    page = platform.get("/admin/transports").json()
    assert page["total"] == 2
    own, relay = page["data"]
    assert own == {
        "name": "own",
        "kind": "direct",
        "state": "paused",
        "since": SINCE,
        "lastError": "535 5.7.8 Authentication failed",
        "inFlight": 0,
        "sentToday": 0,
        "perDay": 50_000,
        "routes": ["default"],
        "unalignedDomains": [],
    }
    assert (relay["state"], relay["lastError"], relay["perDay"]) == ("open", "", None)


def test_a_drained_transport_is_draining_until_it_is_resumed(platform: Api):
    drain_transport("relay")
    relay = platform.get("/admin/transports").json()["data"][1]
    assert relay["state"] == "draining"
    assert relay["since"]
    resume_transport("relay")
    assert platform.get("/admin/transports").json()["data"][1]["state"] == "open"


def test_domains_are_named_whose_spf_record_lacks_the_transport(platform: Api, reseller: Api, alice):
    for name, passing in (
        ("both.example", "ip4:192.0.2.0/24 include:relay.example"),
        ("one.example", "ip4:192.0.2.10"),
        ("unchecked.example", None),
    ):
        make_domain(alice.workspace, name)
        Domain.objects.filter(name=name).update(status="verified", verified_at=Now(), spf_passing=passing)
    own, relay = platform.get("/admin/transports").json()["data"]
    assert (own["unalignedDomains"], relay["unalignedDomains"]) == ([], ["one.example"])
    # A key of a group sees the domains of its workspaces only.
    assert reseller.get("/admin/transports").json()["data"][1]["unalignedDomains"] == []


def test_without_a_file_there_is_one(platform: Api, settings):
    settings.TRANSPORTS = single_transport("smtp")
    (default,) = platform.get("/admin/transports").json()["data"]
    assert (default["name"], default["kind"], default["state"]) == ("default", "smtp", "open")
