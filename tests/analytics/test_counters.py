from datetime import UTC, datetime

import pytest

from analytics import counters
from analytics.models import Tally, TallyDelta
from lib.ids import new_id

pytestmark = pytest.mark.django_db
NOON = datetime(2026, 11, 21, 12, 34, 56, tzinfo=UTC)


def test_deltas_fold_into_one_row_an_hour():
    workspace = new_id("ws_")
    for change in (1, 1, -1, 5):
        counters.add([(counters.CounterKey(workspace, NOON, "status.queued"), change)])
    assert counters.fold() == 4
    row = Tally.objects.get()
    assert (row.hour, row.count) == (NOON.replace(minute=0, second=0), 6)
    counters.add([(counters.CounterKey(workspace, NOON, "status.queued"), -2)])
    counters.fold()
    assert Tally.objects.get().count == 4
    assert not TallyDelta.objects.exists()


def test_changes_that_cancel_out_write_nothing():
    slot = counters.CounterKey(new_id("ws_"), NOON, "x")
    counters.add([(slot, 1), (slot, -1)])
    assert not TallyDelta.objects.exists()


def test_folding_nothing_is_nothing():
    assert counters.fold() == 0
