"""`stream` of analytics, and the counts of streams: `main` has what is in none of the others."""

from datetime import datetime

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from core.counters import counters
from core.counters.slices import Dimension, slice_id
from core.workspaces.models import Workspace
from streams.counts import PERIOD_DAYS
from streams.models import MAIN
from streams.services import create_stream
from tests.analytics.conftest import DAY, NOON, get_analytics
from tests.conftest import Api, code_of, later
from tests.emails.builders import BOUNCED, OK, deliver, send
from tests.rows import each

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def workspace(workspace: Workspace) -> Workspace:
    for slug in ("newsletter", "alerts"):
        create_stream(workspace, slug=slug, name=slug)
    return workspace


@pytest.fixture(params=["folded", "unfolded", "half"])
def count(request, workspace):
    """Add counters of a stream as its emails do; part of them may be folded."""
    added = []

    def add(stream: str, time: datetime, **counts: int) -> None:
        slices = () if stream == MAIN else (slice_id(workspace.id, Dimension.STREAM, stream),)
        changes = {key.replace("_", ".", 1): number for key, number in counts.items()}
        counters.add((counters.CounterKey(workspace.id, time, key, slices), number) for key, number in changes.items())
        added.append(stream)
        if request.param == "folded" or (request.param == "half" and len(added) % 2):
            counters.fold()

    return add


def totals(api: Api, **query: str) -> dict[str, int]:
    return {
        stream: get_analytics(api, stream=stream, **query)["total"] for stream in ("", "main", "newsletter", "alerts")
    }


def test_each_stream_has_its_emails_and_main_the_rest(api: Api, count):
    count("newsletter", NOON, status_delivered=5, reached_delivered=5)
    count("main", NOON, status_delivered=2, status_bounced=1, reached_delivered=2, reached_bounced=1)
    count("alerts", NOON, status_cancelled=3)
    assert totals(api) == {"": 8, "main": 3, "newsletter": 5, "alerts": 0}
    assert get_analytics(api, stream="main")["breakdown"] == {"delivered": 2, "bounced": 1, "opened": 0, "clicked": 0}
    assert get_analytics(api, stream="newsletter")["rates"]["deliveryRate"] == 1


def test_a_range_of_a_stream_is_of_whole_days(api: Api, count):
    for stream in ("main", "newsletter"):
        for time in (NOON - DAY, NOON, NOON + DAY):
            count(stream, time, status_delivered=1)
    inside = {"from_": "2026-03-15T10:30:00Z", "to": "2026-03-15T13:00:00Z"}
    assert totals(api, **inside) == {"": 2, "main": 1, "newsletter": 1, "alerts": 0}
    body = get_analytics(api, stream="newsletter", **inside)
    assert (body["from"], body["to"]) == ("2026-03-15T00:00:00.000Z", "2026-03-16T00:00:00.000Z")
    assert totals(api, from_="2026-03-15", to="2026-03-16") == {"": 4, "main": 2, "newsletter": 2, "alerts": 0}
    assert totals(api, to="2026-03-14")["newsletter"] == 1
    assert totals(api, from_="0001-01-01", to="9999-12-31")["newsletter"] == 3


def test_the_daily_volume_of_a_stream(api: Api, count):
    today = timezone.now()
    count("newsletter", today, status_opened=2, reached_opened=2, reached_delivered=2)
    count("main", today, status_delivered=1, reached_delivered=1)
    count("main", today - DAY, status_delivered=1)
    days = {stream: api.get("/analytics/daily", {"stream": stream, "days": 2}).json()["data"] for stream in
        ("", "main", "newsletter")}  # fmt: skip
    assert {stream: [day["total"] for day in data] for stream, data in days.items()} == {
        "": [1, 3],
        "main": [1, 1],
        "newsletter": [0, 2],
    }
    assert (days["newsletter"][1]["opened"], days["main"][1]["opened"]) == (2, 0)


@each("path", ["/analytics", "/analytics/daily"])
def test_unknown_streams_are_refused(api: Api, bob, path):
    create_stream(bob.workspace, slug="secret", name="Secret")
    assert code_of(api.get(path, {"stream": "secret"})) == (422, "stream_not_found")
    assert code_of(api.get(path, {"stream": "x" * 41})) == (422, "validation_error")


def test_streams_have_counts_of_thirty_days(api: Api, count):
    today = timezone.now()
    count("newsletter", today, status_delivered=4, status_scheduled=9, reached_delivered=4, rated_complained=1)
    count("newsletter", today - (PERIOD_DAYS - 1) * DAY, status_clicked=1, reached_clicked=1)
    count("newsletter", today - PERIOD_DAYS * DAY, status_delivered=100)
    count("main", today, status_bounced=2, reached_bounced=2)
    listed = {stream["id"]: stream["counts"] for stream in api.get("/streams").json()["data"]}
    nothing = dict.fromkeys(("total", "delivered", "bounced", "opened", "clicked", "complained"), 0)
    assert listed == {
        "main": {**nothing, "total": 2, "bounced": 2},
        "newsletter": {**nothing, "total": 5, "delivered": 4, "clicked": 1, "complained": 1},
        "alerts": nothing,
    }
    for stream, counts in listed.items():
        assert api.get(f"/streams/{stream}").json()["counts"] == counts


def test_emails_are_counted_for_their_stream(api: Api):
    send(api, stream="newsletter")
    deliver(OK)
    send(api)
    deliver(BOUNCED)
    send(api, stream="alerts", scheduledFor=later(hours=1))
    assert totals(api) == {"": 2, "main": 1, "newsletter": 1, "alerts": 0}
    counters.fold()
    assert totals(api) == {"": 2, "main": 1, "newsletter": 1, "alerts": 0}


def test_as_many_statements_for_many_streams_as_for_one(api: Api, workspace):

    api.get("/streams")
    with CaptureQueriesContext(connection) as few:
        api.get("/streams")
    for number in range(10):
        create_stream(workspace, slug=f"s{number}", name="S")
    # The key is known for a second.
    api.get("/streams")
    with CaptureQueriesContext(connection) as many:
        api.get("/streams", {"limit": 100})
    assert len(few) == len(many)
