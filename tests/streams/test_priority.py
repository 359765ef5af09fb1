"""The order of streams within a workspace's share of the queue."""

from datetime import timedelta

import pytest
from django.db.models import F

from emails.models import Email, QueueEntry
from emails.sending.queue import WorkspaceShares
from streams.models import Stream
from tests.conftest import Api, mail
from tests.emails.builders import claim_entries

pytestmark = pytest.mark.django_db


@pytest.fixture
def streams(alice) -> None:
    for name in ("high", "low"):
        Stream.objects.create(workspace=alice.workspace, slug=name, name=name, priority=name)


def send(api: Api, stream: str, count: int) -> None:
    for number in range(count):
        assert api.post("/emails/send", mail(to=f"{stream}{number}@example.com", stream=stream)).status_code == 202


def claimed_streams(limit: int) -> list[str]:
    keys = [claim.recipient_id for claim in claim_entries(limit)]
    streams = dict(Email.objects.filter(recipients__in=keys).values_list("recipients", "stream"))
    return [streams[key] for key in keys]


def test_a_high_stream_is_claimed_before_the_others(api: Api, streams):
    send(api, "main", 5)
    send(api, "high", 3)
    assert sorted(claimed_streams(3)) == ["high"] * 3


def test_a_low_stream_gets_a_tenth(api: Api, streams):
    send(api, "low", 10)
    send(api, "main", 40)
    # Older by a day: without ranks, all of the low ones would be first.
    QueueEntry.objects.filter(rank=2).update(due_at=F("due_at") - timedelta(days=1))
    claimed = claimed_streams(20)
    assert len(claimed) == 20
    assert 2 <= claimed.count("low") <= 3


def test_single_claims_reach_a_low_stream(api: Api, streams):
    send(api, "low", 40)
    send(api, "main", 300)
    claimed = [stream for _ in range(300) for stream in claimed_streams(1)]
    # Ten of a hundred on average; fewer than 10 of 300 happen once in 10^6 runs.
    assert claimed.count("low") >= 10


def test_without_low_entries_the_others_get_the_whole_share(api: Api, streams):
    send(api, "main", 30)
    assert claimed_streams(30) == ["main"] * 30


def test_a_share_is_filled_by_low_entries_alone(api: Api, streams):
    send(api, "low", 60)
    for _ in range(3):
        assert claimed_streams(20) == ["low"] * 20


def test_low_entries_leave_a_quarter_of_the_sessions(api: Api, alice, streams):
    send(api, "low", 10)
    assert len(claim_entries(100, cap=8)) == 6
    in_flight = {alice.workspace.id: 6}
    assert claim_entries(100, cap=8, in_flight=in_flight, last_in_flight=in_flight) == []
    send(api, "main", 4)
    rest = claim_entries(100, cap=8, in_flight=in_flight, last_in_flight=in_flight)
    assert [claim.is_last for claim in rest] == [False] * 2


def test_low_entries_of_one_workspace_leave_the_share_of_another(api: Api, bobs_api: Api, alice, bob, streams):
    send(api, "low", 4)
    bobs_api.post("/emails/send", mail(to="ada@example.com", **{"from": "hello@bob.example"}))
    full = {alice.workspace.id: 6}
    claims = claim_entries(100, cap=8, in_flight=full, last_in_flight=full)
    assert [claim.workspace_id for claim in claims] == [bob.workspace.id]


def test_each_result_leads_to_another_claim_while_low_entries_use_their_sessions():
    assert WorkspaceShares(8, {"ws_a": 6}, {"ws_a": 6}).is_exhausted
    assert WorkspaceShares(8, {"ws_a": 8}, {}).is_exhausted
    assert not WorkspaceShares(8, {"ws_a": 7}, {"ws_a": 5}).is_exhausted
