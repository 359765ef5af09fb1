"""A source address that a block list has takes no new email, with leaveWhenListed (docs/decisions/0350)."""

import asyncio
from datetime import timedelta

import pytest
from django.db.models import F
from django.db.models.functions import Now

from core.delivery.bounces.replies import DeliveryStatus
from core.delivery.transports.transports_file import read_transports
from core.lib.worker.stages import Stage
from emails.models import QueueEntry, ReceiverPace, SourceListing, WatchedSource
from emails.pacing.paces import limits_of, release_due
from emails.sending.transports import pace_shares
from emails.sources import listed
from emails.sources.watch import LOOK_UP_EVERY, watch_sources
from streams.services import create_stream
from tests.core.lib.nameserver import NameServer
from tests.emails.builders import accept
from tests.emails.pacing.test_paces import hold, make_release_due
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


@pytest.fixture(autouse=True)
def _own_shares():
    """Let the tests before leave no grants to this one, whose pairs are others."""
    pace_shares.cache_clear()


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
    send_all(worker)
    # The pairs are those of this test.
    asyncio.run(pace_shares()._exchange_all())


def send_all(worker):
    """Send until nothing waits, also for a connection."""
    for _ in range(50):
        make_release_due()
        release_due()
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


def rates():
    """Return the messages a minute that may leave from each address, by address; None for any number."""
    rows = {row.source: (row, limits_of(row.key)) for row in ReceiverPace.objects.annotate(clock=Now())}
    return {
        source: row.pair.at(row.clock.timestamp()).leaving_rate(row.clock.timestamp(), limits)
        for source, (row, limits) in rows.items()
    }


def test_an_address_returns_at_half_of_its_former_rate(dns, host, configure, workspace, monkeypatch):
    monkeypatch.setattr(listed, "REFRESH_SECONDS", 0)
    configure(LISTED, CLEAN, more=", leaveWhenListed: true")
    worker = Worker()
    watch_sources()
    for _ in range(3):
        send(worker, workspace)
    sent = host.peers.count(LISTED)
    host.forget()
    list_address(dns, LISTED)
    row = ReceiverPace.objects.get(source=LISTED)
    # The rate of its first seconds is that of five at least.
    assert sent <= row.former_rate <= sent * 12
    assert rates() == {LISTED: 0.0, CLEAN: None}
    send(worker, workspace)
    assert host.forget() == {CLEAN}
    # A second lookup finds it again, and changes nothing.
    look_up()
    assert ReceiverPace.objects.get(source=LISTED).former_rate == row.former_rate
    dns.remove("3.0.0.127.bl.example.net")
    look_up()
    assert rates() == {LISTED: pytest.approx(row.former_rate / 2, rel=0.05), CLEAN: None}
    assert ReceiverPace.objects.get(source=LISTED).former_rate is None


def test_the_rate_of_a_listed_address_is_forgotten_when_it_is_not_left_any_more(dns, host, configure, workspace):
    configure(LISTED, CLEAN, more=", leaveWhenListed: true")
    watch_sources()
    send(Worker(), workspace)
    list_address(dns, LISTED)
    assert ReceiverPace.objects.get(source=LISTED).former_rate is not None
    configure(LISTED, CLEAN)
    look_up()
    assert ReceiverPace.objects.get(source=LISTED).former_rate is None


def test_email_that_waits_for_a_listed_address_leaves_by_the_other_one(dns, host, configure, workspace):
    configure(LISTED, CLEAN, more=", leaveWhenListed: true")
    watch_sources()
    send(Worker(), workspace)
    rows = {row.source: row for row in ReceiverPace.objects.all()}
    accept(workspace, count=3)
    hold(rows[LISTED].id)
    list_address(dns, LISTED)
    host.forget()
    release_due()
    send_all(Worker())
    assert host.forget() == {CLEAN}


def test_email_waits_while_the_other_address_may_take_over_no_more(dns, host, configure, workspace):
    configure(LISTED, CLEAN, more=", leaveWhenListed: true")
    watch_sources()
    send(Worker(), workspace)
    rows = {row.source: row for row in ReceiverPace.objects.all()}
    accept(workspace, count=3)
    hold(rows[LISTED].id)
    list_address(dns, LISTED)
    ReceiverPace.objects.filter(source=CLEAN).update(accepted=50)
    assert release_due()
    assert set(QueueEntry.objects.values_list("stage", flat=True)) == {Stage.PACED}
    # At midnight, the other one may take over twice as many.
    ReceiverPace.objects.filter(source=CLEAN).update(day=F("day") - timedelta(days=1))
    make_release_due()
    release_due()
    assert QueueEntry.objects.filter(stage=Stage.READY).count() == 3


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
