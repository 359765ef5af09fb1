"""`manage.py reconcile`: differences are reported, and repaired on request."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from core.counters import counters
from core.counters.models import DailyCounter, SliceCounter
from core.counters.slices import Dimension, slice_id
from streams.services import create_stream
from tests.emails.builders import BOUNCED, LATER, OK, deliver, send
from tests.rows import each

pytestmark = pytest.mark.django_db


@pytest.fixture
def history(api):
    """Create emails with several statuses, with partly folded counters."""
    for outcome in (OK, BOUNCED, LATER):
        send(api)
        deliver(outcome)
        counters.fold()
    send(api)


def reconcile(*arguments):
    out = StringIO()
    call_command("reconcile", *arguments, stdout=out)
    return out.getvalue()


def test_matching_counters_are_reported(history):
    assert reconcile() == "All counters match.\n"


def test_a_wrong_counter_is_reported_with_both_counts(history, alice):
    counters.add([(counters.CounterKey(alice.workspace.id, counters.ALL_TIME, "recipients.completed"), 4)])
    out = StringIO()
    with pytest.raises(CommandError, match="1 counters differ"):
        call_command("reconcile", "--workspace", alice.workspace.id, stdout=out)
    expected = f"{alice.workspace.id} 1970-01-01T00:00:00.000Z recipients.completed: counted 5, found 1\n"
    assert out.getvalue() == expected


def test_counters_of_other_workspaces_are_not_checked(history, alice, bob):
    counters.add([(counters.CounterKey(alice.workspace.id, counters.ALL_TIME, "recipients.completed"), 4)])
    assert "All counters match" in reconcile("--workspace", bob.workspace.id)


def test_counters_of_other_apps_are_not_changed(history, alice):
    counters.add([(counters.CounterKey(alice.workspace.id, counters.ALL_TIME, "webhooks.sent"), 4)])
    assert "All counters match" in reconcile()


def test_repair_corrects_hours_and_days_and_is_safe_to_repeat(history, api, alice):
    before = api.get("/analytics").json(), api.get("/analytics/daily").json()
    counters.add([(counters.CounterKey(alice.workspace.id, timezone.now(), "status.delivered"), 7)])
    counters.fold()
    DailyCounter.objects.filter(key="reached.bounced").update(count=0)
    assert reconcile("--repair").endswith("2 counters corrected.\n")
    assert reconcile("--repair") == "All counters match.\n"
    assert (api.get("/analytics").json(), api.get("/analytics/daily").json()) == before


@each("workspace", ["nonsense", "ws_short"])
def test_an_invalid_workspace_is_reported(db, workspace):
    with pytest.raises(CommandError, match=workspace):
        reconcile("--workspace", workspace)


def test_counts_of_streams_are_repaired(api, alice):
    create_stream(alice.workspace, slug="newsletter", name="News", kind="bulk")
    send(api, stream="newsletter")
    deliver(OK)
    counters.fold()
    assert reconcile() == "All counters match.\n"
    counted = SliceCounter.objects.filter(slice=slice_id(alice.workspace.id, Dimension.STREAM, "newsletter"))
    before = dict(counted.values_list("key", "count"))
    assert before["status.delivered"] == 1
    counted.filter(key="status.delivered").update(count=5)
    with pytest.raises(CommandError):
        reconcile()
    reconcile("--repair")
    assert reconcile() == "All counters match.\n"
    assert dict(counted.values_list("key", "count")) == before
