"""Daily limits of messages to postmaster and abuse: by network, with a share for complaints that prove a recipient."""

from datetime import timedelta

import pytest
from django.db.models.functions import Now

from interfaces.inbound import role_accounts
from interfaces.inbound.models import MailReport
from interfaces.inbound.role_accounts import DailyLimit, is_acceptable, network_of
from tests.interfaces.inbound import dsns
from tests.interfaces.inbound.fixtures import DOMAIN, return_path_of, sent_recipient
from tests.rows import each

FLOOD, HOST = "198.51.100.7", "203.0.113.9"
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _small_limits(monkeypatch):
    monkeypatch.setattr(role_accounts, "ANY_MESSAGE", DailyLimit(per_network=2, total=4))
    monkeypatch.setattr(role_accounts, "WITH_PROOF", DailyLimit(per_network=4, total=6))


def message(peer: str, source: str = "Subject: Hello\r\n\r\nHello\r\n", **fields) -> MailReport:
    return MailReport(recipient_id=None, sender="eve@example.com", peer=peer, source=source.encode(), **fields)


def store(*peers: str, **fields) -> None:
    MailReport.objects.bulk_create([message(peer, **fields) for peer in peers])


@pytest.fixture
def complaint(workspace) -> str:
    path = return_path_of(sent_recipient(workspace))
    return dsns.complaint(f"Return-Path: <{path}>\r\nSubject: Hello\r\n\r\nHi".encode()).decode()


def test_one_network_uses_only_its_limit():
    store("198.51.100.1", "198.51.100.2")
    assert not is_acceptable(message(FLOOD))
    assert is_acceptable(message(HOST))


def test_a_flood_from_many_networks_leaves_a_share_for_complaints(complaint):
    store("192.0.2.1", "198.18.1.1", "198.18.2.1", "198.18.3.1")
    assert not is_acceptable(message(HOST))
    assert is_acceptable(message(HOST, complaint))
    forged = complaint.replace("Return-Path: <", "Return-Path: <x")
    assert not is_acceptable(message(HOST, forged))


def test_complaints_have_limits_too(complaint):
    store(*[HOST] * 4)
    assert not is_acceptable(message(HOST, complaint))
    assert is_acceptable(message(FLOOD, complaint))
    store("192.0.2.1", "192.0.2.2")
    assert not is_acceptable(message(FLOOD, complaint))


def test_messages_of_yesterday_and_to_return_paths_do_not_count(workspace):
    store(FLOOD, FLOOD, received_at=Now() - timedelta(hours=25))
    for _ in range(2):
        MailReport.objects.create(
            recipient_id=sent_recipient(workspace).id, sender="", peer=FLOOD, source=b"Subject: Hello"
        )
    assert is_acceptable(message(FLOOD))


@each(("peer", "network"), [
    ("198.51.100.7", "198.51.100.0/24"), ("::ffff:198.51.100.7", "198.51.100.0/24"),
    ("2001:db8:1:2::3", "2001:db8:1::/48"), ("", ""), ("local", "local"),
])  # fmt: skip
def test_networks(peer, network):
    assert network_of(peer) == network


@pytest.mark.django_db(transaction=True)
def test_the_inbound_server_applies_the_limits(port, workspace, complaint):
    address = f"abuse@{DOMAIN}"
    replies = [port.send(b"Subject: Hello\r\n\r\nHello\r\n", address)[0] for _ in range(3)]
    assert replies == [250, 250, 452]
    assert [port.send(complaint.encode(), address)[0] for _ in range(3)] == [250, 250, 452]
    assert MailReport.objects.count() == 4
