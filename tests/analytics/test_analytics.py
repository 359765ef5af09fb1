"""`GET /v1/analytics` and `/v1/analytics/daily`."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from analytics.services import DAILY_VOLUME, RANGE_VOLUME, read_range
from core.counters import counters
from core.counters.models import CounterDelta
from core.lib.datetimes import format_datetime
from core.lib.ids import new_id
from tests.analytics.conftest import DAY, HOUR, NOON, get_analytics
from tests.conftest import field_codes
from tests.rows import each

pytestmark = pytest.mark.django_db

NOTHING = {"delivered": 0, "bounced": 0, "opened": 0, "clicked": 0}


@pytest.fixture(params=["folded", "unfolded", "half"])
def count(request, workspace):
    """Add counters as emails created at a time do; part of them may be folded."""

    def add(time, **counts):
        changes = {key.replace("_", "."): number for key, number in counts.items()}
        counters.add((counters.CounterKey(workspace.id, time, key), number) for key, number in changes.items())
        if request.param == "folded" or (request.param == "half" and time.minute % 2):
            counters.fold()

    return add


def test_an_empty_workspace_has_zeros_and_rates_of_zero(api):
    body = get_analytics(api)
    rates = {"deliveryRate": 0, "bounceRate": 0, "openRate": 0, "clickRate": 0}
    assert (body["total"], body["breakdown"], body["rates"]) == (0, NOTHING, rates)


def test_each_rate_is_its_count_divided_by_the_total(api, count):
    count(NOON, status_delivered=2, status_opened=1, reached_delivered=3, reached_opened=1)
    body = get_analytics(api)
    assert body["total"] == 3
    assert body["breakdown"] == {"delivered": 3, "bounced": 0, "opened": 1, "clicked": 0}
    assert body["rates"] == {"deliveryRate": 1.0, "bounceRate": 0, "openRate": 1 / 3, "clickRate": 0}


def test_cancelled_and_scheduled_emails_are_excluded(api, count):
    count(NOON, status_queued=1, status_cancelled=5, status_scheduled=7)
    count(NOON + HOUR, status_failed=1, status_sent=1, status_bounced=1, status_clicked=1)
    assert get_analytics(api)["total"] == 5


def test_emails_deleted_by_retention_still_count(api, count):
    count(NOON, status_delivered=3, reached_delivered=3)
    count(NOON, **{"gone.status.delivered": 2, "gone.reached.delivered": 2})
    assert (get_analytics(api)["total"], get_analytics(api)["breakdown"]["delivered"]) == (3, 3)
    assert api.get("/emails").json()["total"] == 1


def test_another_workspaces_emails_do_not_count(api, bob, count):
    counters.add([(counters.CounterKey(bob.workspace.id, NOON, "status.delivered"), 9)])
    assert get_analytics(api)["total"] == 0


@each(
    ("query", "start", "end", "total"),
    [
        # One email in each of these minutes: 11:59, 12:00, 12:59, 13:00 of the 15th, and midnights around it.
        ({"from_": "2026-03-15T12:00:00Z", "to": "2026-03-15T13:00:00Z"}, NOON, NOON + HOUR, 2),
        ({"from_": "2026-03-15T12:59:59.999Z", "to": "2026-03-15T12:59:59.999Z"}, NOON, NOON + HOUR, 2),
        ({"from_": "2026-03-15T12:30:00Z", "to": "2026-03-15T13:00:00.001Z"}, NOON, NOON + 2 * HOUR, 3),
        ({"from_": "2026-03-15T12:30:00Z", "to": "2026-03-15T13:00:00.000001Z"}, NOON, NOON + 2 * HOUR, 3),
        ({"from_": "2026-03-15T12:00:00Z", "to": "2026-03-15T12:00:00Z"}, NOON, NOON, 0),
        # The same times with other offsets; an unescaped plus sign arrives as a space.
        ({"from_": "2026-03-15T14:00:00+02:00", "to": "2026-03-15T08:00:00-05:00"}, NOON, NOON + HOUR, 2),
        ({"from_": "2026-03-15T17:30:00 05:30", "to": "2026-03-15T18:30:00+05:30"}, NOON, NOON + HOUR, 2),
        # An offset of half an hour: rounded in UTC.
        ({"from_": "2026-03-15T18:00:00+05:30", "to": "2026-03-15T18:00:00+05:30"}, NOON, NOON + HOUR, 2),
        ({"from_": "2026-03-15", "to": "2026-03-15"}, NOON - 12 * HOUR, NOON + 12 * HOUR, 6),
        ({"from_": "2026-03-14", "to": "2026-03-16"}, NOON - 36 * HOUR, NOON + 36 * HOUR, 8),
        ({"from_": "2026-03-14T23:00:00Z", "to": "2026-03-16T00:30:00Z"}, NOON - 13 * HOUR, NOON + 13 * HOUR, 8),
    ],
)
def test_a_range_is_rounded_to_utc_hours_and_echoed(api, count, query, start, end, total):
    midnight, next_midnight = NOON - 12 * HOUR, NOON + 12 * HOUR
    minute = timedelta(minutes=1)
    times = [midnight - minute, midnight, NOON - minute, NOON, NOON + HOUR - minute, NOON + HOUR]
    for time in (*times, next_midnight - minute, next_midnight):
        count(time, status_delivered=1)
    body = get_analytics(api, **query)
    assert (body["from"], body["to"], body["total"]) == (format_datetime(start), format_datetime(end), total)


def test_every_range_of_hours_matches_a_scan(api, count, workspace):
    """Days and hours are read from different rows: no boundary may be lost or counted twice."""
    hours = [NOON + number * 7 * HOUR for number in range(12)]
    for number, hour in enumerate(hours):
        count(hour + timedelta(minutes=number), status_sent=2**number)
    edges = [NOON + number * 5 * HOUR for number in range(-1, 18)]
    for start in edges:
        for end in edges:
            expected = sum(2**number for number, hour in enumerate(hours) if start <= hour < end)
            assert read_range(workspace, start=start, end=end).total == expected, (start, end)


def test_without_a_range_all_emails_are_counted_and_the_range_is_echoed(api, workspace):
    counters.add([(counters.CounterKey(workspace.id, datetime.now(UTC), "status.queued"), 1)])
    body = get_analytics(api)
    assert body["from"] == format_datetime(NOON - timedelta(days=1000))
    now = counters.hour_of(datetime.now(UTC))
    assert body["to"] in {format_datetime(now), format_datetime(now + HOUR)}
    assert body["total"] == 1
    assert get_analytics(api, from_="", to="")["total"] == 1


def test_a_new_workspace_is_counted_from_the_hour_of_its_creation(api, alice):
    counters.add([(counters.CounterKey(alice.workspace.id, datetime.now(UTC), "status.queued"), 1)])
    assert get_analytics(api)["total"] == 1


@each(
    ("query", "echoed"),
    [
        ({"from_": "2999-01-01"}, ("2999-01-01T00:00:00.000Z", "2999-01-01T00:00:00.000Z")),
        # Within the last representable day, and in its last hour.
        ({"from_": "9999-12-31T05:30:00Z"}, ("9999-12-31T05:00:00.000Z", "9999-12-31T05:00:00.000Z")),
        (
            {"from_": "9999-12-31T23:30:00Z", "to": "9999-12-31T23:40:00Z"},
            ("9999-12-31T23:00:00.000Z", "9999-12-31T23:00:00.000Z"),
        ),
        ({"to": "0001-01-01"}, ("0001-01-02T00:00:00.000Z", "0001-01-02T00:00:00.000Z")),
        ({"from_": "0001-01-01", "to": "9999-12-31"}, ("0001-01-01T00:00:00.000Z", "9999-12-31T23:00:00.000Z")),
        (
            {"from_": "0001-01-01T00:00:00+14:00", "to": "9999-12-31T23:59:59-14:00"},
            ("0001-01-01T00:00:00.000Z", "9999-12-31T23:00:00.000Z"),
        ),
    ],
)
def test_ranges_beyond_all_emails_are_empty(api, query, echoed):
    body = get_analytics(api, **query)
    assert ((body["from"], body["to"]), body["total"]) == (echoed, 0)


@each("name", ["from", "to"])
@each("value", ["yesterday", "2026-13-01", "1773576000", "2026-03-15T25:00Z", "\x00"])
def test_an_invalid_time_is_422(api, name, value):
    assert field_codes(api.get("/analytics", {name: value})).keys() == {name}


def test_a_range_that_ends_before_it_begins_is_422(api):
    query = {"from": "2026-03-15T12:00:00.001Z", "to": "2026-03-15T12:00:00Z"}
    assert field_codes(api.get("/analytics", query)) == {"from": "invalid_range"}


def daily(api, **query):
    return get_analytics(api, "/analytics/daily", **query)["data"]


@each(("query", "days"), [({}, 14), ({"days": ""}, 14), ({"days": 1}, 1), ({"days": "90"}, 90)])
def test_daily_has_each_day_oldest_first_with_zeros(api, query, days):
    today = datetime.now(UTC).date()
    zeros = {"total": 0, "delivered": 0, "bounced": 0, "opened": 0}
    expected = [{"date": str(today - timedelta(days=back)), **zeros} for back in reversed(range(days))]
    assert daily(api, **query) == expected


@each("days", ["0", "91", "-1", "x", "1.5", "1e1", "9" * 400])
def test_days_outside_of_1_to_90_are_422(api, days):
    assert field_codes(api.get("/analytics/daily", {"days": days})).keys() == {"days"}


def test_a_day_begins_at_midnight_utc(api, count):
    midnight = datetime.combine(datetime.now(UTC).date(), datetime.min.time(), UTC)
    count(midnight, status_queued=1)
    count(midnight - timedelta(minutes=1), status_delivered=2, reached_delivered=2, reached_opened=1)
    count(midnight - DAY, status_bounced=4, reached_bounced=4, status_cancelled=1)
    count(midnight - DAY - timedelta(minutes=1), status_failed=8)
    count(midnight - 2 * DAY - timedelta(minutes=1), status_failed=16)
    before, yesterday, today = daily(api, days=3)
    assert (before["total"], yesterday["total"], today["total"]) == (8, 6, 1)
    assert (yesterday["delivered"], yesterday["bounced"], yesterday["opened"]) == (2, 4, 1)


def write_deltas(workspace_id=None):
    CounterDelta.objects.bulk_create(
        CounterDelta(workspace_id=workspace_id or new_id("ws_"), hour=NOON, key="status.sent", change=1)
        for _ in range(2000)
    )


def analyze():
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE analytics_tallydelta")


@pytest.mark.parametrize("seen", ["nothing", "others", "ours"])
def test_unfolded_deltas_of_other_workspaces_are_not_read(workspace, seen):
    """A reader uses the index, regardless of the number of deltas and of the last ANALYZE."""
    if seen == "ours":
        write_deltas(workspace.id)
        analyze()
        CounterDelta.objects.all().delete()
    write_deltas()
    if seen == "others":
        analyze()
    values = {"days": 14, "keys": [], "both": [], **counters.range_values(NOON, NOON + HOUR)}
    for sql in (RANGE_VOLUME, DAILY_VOLUME, counters.TOTAL):
        plan = "\n".join(row for (row,) in counters.read(f"EXPLAIN {sql}", workspace.id, **values))
        assert "Seq Scan on analytics_tallydelta" not in plan
        assert "delta_workspace" in plan
