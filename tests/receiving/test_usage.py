"""Shares of one network in what a workspace receives (docs/decisions/0296)."""

from datetime import timedelta

import pytest
from django.utils import timezone

from receiving.arrival import replies
from receiving.arrival.routing import decide_recipient
from receiving.arrival.storing import Arrival, store_message
from receiving.arrival.usage import LimitReached
from receiving.deletion import delete_emails
from receiving.models import NetworkUsage, ReceivedEmail, ReceivingUsage
from tests.conftest import make_account, make_domain
from tests.receiving.builders import PLAIN, make_route, receive_for
from tests.rows import each

pytestmark = pytest.mark.django_db

TO = "support@alice.example"
STRANGER, NEIGHBOUR, OTHER = "9.9.9.9", "9.9.9.200", "9.9.8.9"


def deliver(number: int, *to: str, remote_ip: str | None = STRANGER) -> str:
    """Store a message of len(PLAIN) + 10 bytes; return the reply to its recipients or to its end."""
    decisions = [decide_recipient(address, sender="", remote_ip=remote_ip) for address in to or (TO,)]
    if refusal := next((one.reply for one in decisions if not one.is_accepted), ""):
        return refusal
    recipients = [one.recipient for one in decisions if one.recipient]
    try:
        source = PLAIN + f"{number:10}".encode()
        return store_message(Arrival(source, envelope_from="", remote_ip=remote_ip), recipients)
    except LimitReached as error:
        return error.reply


@pytest.fixture(autouse=True)
def _limits(settings, route):
    settings.RECEIVING_DAILY_LIMIT, settings.RECEIVING_STORAGE = 10**6, 40 * (len(PLAIN) + 10)


def test_a_network_has_a_quarter_of_the_storage():
    assert all(deliver(number).startswith("inb_") for number in range(9))
    assert deliver(9, remote_ip=NEIGHBOUR).startswith("inb_")
    assert deliver(10) == deliver(10, remote_ip=NEIGHBOUR) == replies.NETWORK_STORAGE_FULL
    # Others are not affected, nor are messages of this installation.
    assert all(deliver(number, remote_ip=OTHER).startswith("inb_") for number in range(20, 30))
    ours = enumerate(["10.0.0.1", None] * 10, start=50)
    assert all(deliver(number, remote_ip=one).startswith("inb_") for number, one in ours)
    assert deliver(90, remote_ip="2606:4700::1") == replies.STORAGE_FULL


def test_a_message_that_exceeds_the_quarter_changes_nothing(settings):
    settings.RECEIVING_STORAGE += 39
    assert [deliver(number)[:4] for number in range(10)] == ["inb_"] * 10
    before = [*ReceivingUsage.objects.values(), *NetworkUsage.objects.values()]
    assert deliver(10) == replies.NETWORK_STORAGE_FULL
    assert [*ReceivingUsage.objects.values(), *NetworkUsage.objects.values()] == before


def test_a_network_has_a_quarter_of_the_messages_of_a_day(settings):
    settings.RECEIVING_DAILY_LIMIT, settings.RECEIVING_STORAGE = 8, 0
    assert [deliver(number)[:4] for number in range(2)] == ["inb_"] * 2
    assert deliver(2) == replies.NETWORK_DAY_IS_FULL
    decision = decide_recipient(TO, sender="", remote_ip=NEIGHBOUR)
    assert decision.reply == replies.NETWORK_DAY_IS_FULL
    assert deliver(3, remote_ip=OTHER).startswith("inb_")
    NetworkUsage.objects.update(day=timezone.now().date() - timedelta(days=1))
    assert deliver(4).startswith("inb_")


@each("peers", [("2606:4700:1::1", "2606:4700:1:ffff::2"), (NEIGHBOUR, STRANGER)])
def test_addresses_of_one_network_share_its_quarter(settings, peers):
    settings.RECEIVING_DAILY_LIMIT = 4
    assert deliver(0, remote_ip=peers[1]).startswith("inb_")
    assert deliver(1, remote_ip=peers[0]) == replies.NETWORK_DAY_IS_FULL


def test_each_workspace_has_its_own_shares():
    bob = make_account("bob")
    receive_for(make_domain(bob.workspace, "bob.example"))
    make_route(bob.workspace, domain="bob.example")
    assert all(deliver(number).startswith("inb_") for number in range(10))
    assert deliver(10, "x@bob.example").startswith("inb_")
    assert deliver(11, "x@bob.example", TO) == replies.NETWORK_STORAGE_FULL
    assert NetworkUsage.objects.get(workspace=bob.workspace).messages == 1


def test_deletion_frees_the_share_of_the_network():
    first = [deliver(number) for number in range(10)]
    deliver(20, remote_ip=OTHER)
    delete_emails(first[:3])
    assert NetworkUsage.objects.get(network="9.9.9.0/24").stored_bytes == 7 * (len(PLAIN) + 10)
    assert [deliver(number)[:4] for number in range(30, 33)] == ["inb_"] * 3
    NetworkUsage.objects.update(day=timezone.now().date() - timedelta(days=1))
    delete_emails(ReceivedEmail.objects.filter(message__remote_ip=STRANGER).values_list("id", flat=True))
    assert [*NetworkUsage.objects.values_list("network", flat=True)] == ["9.9.8.0/24"]
    delete_emails(ReceivedEmail.objects.values_list("id", flat=True))
    assert not NetworkUsage.objects.exists()
    assert ReceivingUsage.objects.get().stored_bytes == 0
