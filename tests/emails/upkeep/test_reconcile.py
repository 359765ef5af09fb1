"""`manage.py reconcile`: what differs is told, and corrected when asked."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from analytics import counters
from analytics.models import TallyDay
from tests.emails.test_stats import BOUNCED, LATER, OK, send, work

pytestmark = pytest.mark.django_db


@pytest.fixture
def history(api):
    """Emails in several states, counted and half folded."""
    for outcome in (OK, BOUNCED, LATER):
        send(api)
        work(outcome)
        counters.fold()
    send(api)


def reconcile(*arguments):
    out = StringIO()
    call_command("reconcile", *arguments, stdout=out)
    return out.getvalue()


def test_right_counters_are_told_so(history):
    assert reconcile() == "Every counter is what reconcile computes.\n"


def test_a_wrong_counter_is_told_with_both_figures(history, alice):
    counters.add([(counters.CounterKey(alice.workspace.id, counters.ALL_TIME, "recipients.completed"), 4)])
    out = StringIO()
    with pytest.raises(CommandError, match="1 counters differ"):
        call_command("reconcile", "--workspace", alice.workspace.id, stdout=out)
    told = f"{alice.workspace.id} 1970-01-01T00:00:00.000Z recipients.completed: counted 5, found 1\n"
    assert out.getvalue() == told


def test_another_workspaces_counters_are_not_looked_at(history, alice, bob):
    counters.add([(counters.CounterKey(alice.workspace.id, counters.ALL_TIME, "recipients.completed"), 4)])
    assert "Every counter" in reconcile("--workspace", bob.workspace.id)


def test_counters_of_other_rooms_are_left_alone(history, alice):
    counters.add([(counters.CounterKey(alice.workspace.id, counters.ALL_TIME, "webhooks.sent"), 4)])
    assert "Every counter" in reconcile()


def test_repair_corrects_hours_and_days_and_is_safe_to_repeat(history, api, alice):
    before = api.get("/analytics").json(), api.get("/analytics/daily").json()
    counters.add([(counters.CounterKey(alice.workspace.id, timezone.now(), "status.delivered"), 7)])
    counters.fold()
    TallyDay.objects.filter(key="reached.bounced").update(count=0)
    assert reconcile("--repair").endswith("2 counters corrected.\n")
    assert reconcile("--repair") == "Every counter is what reconcile computes.\n"
    assert (api.get("/analytics").json(), api.get("/analytics/daily").json()) == before


@pytest.mark.parametrize("workspace", ["nonsense", "ws_short"])
def test_what_is_no_workspace_is_told(db, workspace):
    with pytest.raises(CommandError, match=workspace):
        reconcile("--workspace", workspace)
