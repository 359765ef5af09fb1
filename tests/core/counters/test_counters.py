from datetime import UTC, datetime, timedelta

import pytest

from core.counters import counters
from core.counters.models import CounterDelta, HourlyCounter
from core.lib.ids import new_id

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 11, 21, 12, 34, 56, tzinfo=UTC)


def test_deltas_fold_into_one_row_an_hour():
    workspace = new_id("ws_")
    for change in (1, 1, -1, 5):
        counters.add([(counters.CounterKey(workspace, NOON, "status.queued"), change)])
    assert counters.fold() == 4
    row = HourlyCounter.objects.get()
    assert (row.hour, row.count) == (NOON.replace(minute=0, second=0), 6)
    counters.add([(counters.CounterKey(workspace, NOON, "status.queued"), -2)])
    counters.fold()
    assert HourlyCounter.objects.get().count == 4
    assert not CounterDelta.objects.exists()


def test_changes_that_cancel_out_write_nothing():
    counter = counters.CounterKey(new_id("ws_"), NOON, "x")
    counters.add([(counter, 1), (counter, -1)])
    assert not CounterDelta.objects.exists()


def test_folding_without_deltas_returns_zero():
    assert counters.fold() == 0


def test_a_range_reads_whole_days_in_one_row_each():
    midnight = NOON.replace(hour=0, minute=0, second=0)
    for start, first in ((midnight, 0), (midnight + counters.HOUR, 1)):
        values = counters.range_values(start, midnight + timedelta(days=2))
        assert values["first_day"] == (midnight + timedelta(days=first)).date()
