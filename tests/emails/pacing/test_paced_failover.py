"""Email that has waited too long for a receiver leaves by the next transport of its route (docs/decisions/0370)."""

from datetime import timedelta

import pytest
from django.db.models import F

from core.delivery.pacing import shares
from core.delivery.transports.transports_file import read_transports
from core.lib.worker.stages import Stage
from emails.models import QueueEntry, Recipient
from emails.sending.transports import pace_shares
from events.models import Event
from tests.core.lib.nameserver import NameServer
from tests.emails.builders import accept
from tests.emails.sending.test_transports import Worker, hosts, named, recipients  # noqa: F401 - fixtures

pytestmark = pytest.mark.django_db(transaction=True)

ZONES = {"example.com": {"MX": ["10 mx.example.com."]}, "mx.example.com": {"A": ["127.0.0.1"]}}
TOO_FAST = "421 4.7.28 Gmail has detected an unusual rate of mail originating from your IP address"


@pytest.fixture
def route(settings, named, hosts, tmp_path, monkeypatch):  # noqa: F811
    """Let a direct transport be the first of the route, and a relay the second one; the receiver slows at once."""
    hosts["own"].replies["mail"] = TOO_FAST
    path = tmp_path / "transports.yaml"
    relay = f"{{kind: smtp, url: 'smtp://127.0.0.1:{hosts['relay'].port}?tls=none'}}"
    use = "{use: [own, relay], failoverOn: [paced], pacedAfterSeconds: 300}"
    path.write_text(f"transports: {{own: {{kind: direct}}, relay: {relay}}}\nroutes: {{default: {use}}}")
    settings.DIRECT_SMTP_PORT, settings.DELIVERY_ALLOW_PRIVATE_NETWORKS = hosts["own"].port, True
    # A busy machine may be slow to grant the first connection.
    monkeypatch.setattr(shares, "WAIT_SECONDS", 30.0)
    pace_shares.cache_clear()
    with NameServer(ZONES) as server:
        settings.DNS_SERVERS = [server.address]
        settings.TRANSPORTS = read_transports(path)
        yield
    pace_shares.cache_clear()


def wait(seconds):
    passed = timedelta(seconds=seconds)
    paced = QueueEntry.objects.filter(stage=Stage.PACED)
    paced.update(due_at=F("due_at") - passed, paced_since=F("paced_since") - passed)


def test_what_waits_leaves_by_the_relay_once_its_time_is_over(route, workspace, hosts):  # noqa: F811
    worker = Worker()
    accept(workspace)
    assert [outcome.reason for outcome in worker.send()] == ["rate_limited"]
    accept(workspace, count=3)
    worker.send()
    assert set(QueueEntry.objects.values_list("stage", "handed_to")) == {(Stage.PACED, None)}
    wait(299)
    assert worker.send() == []
    connections = hosts["own"].connections
    wait(2)
    assert {outcome.transport for outcome in worker.send()} == {"relay"}
    assert {name: len(found) for name, found in recipients(hosts).items()} == {"own": 0, "relay": 4}
    assert hosts["own"].connections == connections
    assert set(Recipient.objects.values_list("state", "transport")) == {("sent", "relay")}
    # The wait used no attempt and has no event.
    assert sorted(Recipient.objects.values_list("attempts", flat=True)) == [1, 1, 1, 2]
    assert Event.objects.filter(kind="deferred").count() == 1
