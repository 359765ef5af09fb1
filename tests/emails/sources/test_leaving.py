"""A source address that a block list has takes no new email, with leaveWhenListed (docs/decisions/0350)."""

import pytest
from django.db.models.functions import Now

from core.delivery.bounces.replies import DeliveryStatus
from core.delivery.transports.transports_file import read_transports
from emails.models import SourceListing, WatchedSource
from emails.sources import listed
from emails.sources.watch import LOOK_UP_EVERY, watch_sources
from streams.services import create_stream
from tests.core.lib.nameserver import NameServer
from tests.emails.builders import accept
from tests.emails.sending.test_transports import Worker
from tests.sending_process import MailHost

# The listed addresses are read by another thread.
pytestmark = pytest.mark.django_db(transaction=True)

# 127.0.0.2 is the test entry of every list.
# All of them choose the same address once in 130,000 runs.
STREAMS = 18
LISTED, CLEAN = "127.0.0.3", "127.0.0.4"
ZONES = {
    "2.0.0.127.bl.example.net": {"A": ["127.0.0.2"]},
    "example.com": {"MX": ["10 mx.example.com."]},
    "mx.example.com": {"A": ["127.0.0.1"]},
}


class Receiver(MailHost):
    """A mail host that keeps the address of each message's client."""

    def __init__(self):
        self.peers = []
        super().__init__()

    async def handle_DATA(self, server, session, envelope):  # noqa: N802
        self.peers.append(session.peer[0])
        return await super().handle_DATA(server, session, envelope)

    def forget(self):
        peers, self.peers = self.peers, []
        return set(peers)


@pytest.fixture
def host():
    host = Receiver()
    host.start()
    yield host
    host.stop()


@pytest.fixture
def dns(settings, host, tmp_path):
    settings.BLOCKLISTS = ["bl.example.net"]
    settings.DELIVERY_ALLOW_PRIVATE_NETWORKS = True
    settings.DIRECT_SMTP_PORT, settings.DELIVERY_TRANSPORT = host.port, "named"
    with NameServer(ZONES) as server:
        settings.DNS_SERVERS = [server.address]
        yield server


@pytest.fixture
def configure(settings, tmp_path):
    def name(*addresses, more=""):
        path = tmp_path / "transports.yaml"
        listed = ", ".join(f'"{address}"' for address in addresses)
        path.write_text(
            f"transports: {{own: {{kind: direct, sourceAddresses: [{listed}]{more}}}}}\n"
            "routes: {default: {use: [own]}}\n"
        )
        settings.TRANSPORTS = read_transports(path)

    return name


@pytest.fixture
def workspace(workspace):
    for number in range(STREAMS):
        create_stream(workspace, slug=f"s{number}", name=f"Stream {number}")
    return workspace


def send(worker, workspace):
    """Send an email of each stream, which keeps one of the addresses."""
    for number in range(STREAMS):
        accept(workspace, stream=f"s{number}")
    for _ in range(50):
        if not worker.send():
            return
    raise AssertionError("email is still waiting")


def look_up():
    WatchedSource.objects.update(looked_up_at=Now() - 2 * LOOK_UP_EVERY)
    watch_sources()


def list_address(dns, address):
    dns.put(f"{'.'.join(reversed(address.split('.')))}.bl.example.net", {"A": ["127.0.0.2"]})
    look_up()
    assert SourceListing.objects.get(source__address=address).listed_at


def test_new_email_leaves_by_the_other_address_until_the_list_forgets(dns, host, configure, workspace, monkeypatch):
    assert listed.REFRESH_SECONDS <= 30
    monkeypatch.setattr(listed, "REFRESH_SECONDS", 0)
    configure(LISTED, CLEAN, more=", leaveWhenListed: true")
    worker = Worker()
    watch_sources()
    send(worker, workspace)
    assert host.forget() == {LISTED, CLEAN}
    list_address(dns, LISTED)
    send(worker, workspace)
    assert host.forget() == {CLEAN}
    dns.remove("3.0.0.127.bl.example.net")
    look_up()
    send(worker, workspace)
    assert host.forget() == {LISTED, CLEAN}


def test_all_listed_addresses_are_used_as_before(dns, host, configure, workspace):
    configure(LISTED, CLEAN, more=", leaveWhenListed: true")
    watch_sources()
    list_address(dns, LISTED)
    list_address(dns, CLEAN)
    send(Worker(), workspace)
    assert host.forget() == {LISTED, CLEAN}


def test_without_the_option_nothing_changes(dns, host, configure, workspace):
    configure(LISTED, CLEAN)
    watch_sources()
    list_address(dns, LISTED)
    send(Worker(), workspace)
    assert host.forget() == {LISTED, CLEAN}


def test_the_addresses_are_read_once_for_all_messages(dns, host, configure, workspace, monkeypatch):
    reads = []
    read = listed.addresses_to_leave
    monkeypatch.setattr(listed, "addresses_to_leave", lambda: reads.append(1) or read())
    configure(LISTED, CLEAN, more=", leaveWhenListed: true")
    worker = Worker()
    accept(workspace, count=20)
    assert DeliveryStatus.DELIVERED in {outcome.status for outcome in worker.send()}
    assert len(reads) == 1
