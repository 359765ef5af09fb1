"""`manage.py recount`: what differs is told, and corrected when asked."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from analytics import tally
from analytics.models import TallyDay
from tests.emails.test_stats import BOUNCED, LATER, OK, send, work

pytestmark = pytest.mark.django_db


@pytest.fixture
def history(api):
    """Emails in several states, counted and half folded."""
    for outcome in (OK, BOUNCED, LATER):
        send(api)
        work(outcome)
        tally.fold()
    send(api)


def recount(*arguments):
    out = StringIO()
    call_command("recount", *arguments, stdout=out)
    return out.getvalue()


def test_right_counters_are_told_so(history):
    assert recount() == "Every counter is what a recount finds.\n"


def test_a_wrong_counter_is_told_with_both_figures(history, alice):
    tally.add([(tally.Slot(alice.workspace.id, tally.EVER, "recipients.completed"), 4)])
    out = StringIO()
    with pytest.raises(CommandError, match="1 counters differ"):
        call_command("recount", "--workspace", alice.workspace.id, stdout=out)
    told = f"{alice.workspace.id} 1970-01-01T00:00:00.000Z recipients.completed: counted 5, found 1\n"
    assert out.getvalue() == told


def test_another_workspaces_counters_are_not_looked_at(history, alice, bob):
    tally.add([(tally.Slot(alice.workspace.id, tally.EVER, "recipients.completed"), 4)])
    assert "Every counter" in recount("--workspace", bob.workspace.id)


def test_counters_of_other_rooms_are_left_alone(history, alice):
    tally.add([(tally.Slot(alice.workspace.id, tally.EVER, "webhooks.sent"), 4)])
    assert "Every counter" in recount()


def test_repair_corrects_hours_and_days_and_is_safe_to_repeat(history, api, alice):
    before = api.get("/analytics").json(), api.get("/analytics/daily").json()
    tally.add([(tally.Slot(alice.workspace.id, timezone.now(), "status.delivered"), 7)])
    tally.fold()
    TallyDay.objects.filter(key="reached.bounced").update(count=0)
    assert recount("--repair").endswith("2 counters corrected.\n")
    assert recount("--repair") == "Every counter is what a recount finds.\n"
    assert (api.get("/analytics").json(), api.get("/analytics/daily").json()) == before


@pytest.mark.parametrize("workspace", ["nonsense", "ws_short"])
def test_what_is_no_workspace_is_told(db, workspace):
    with pytest.raises(CommandError, match=workspace):
        recount("--workspace", workspace)
