"""Warn and suspend the workspaces whose mail endangers everybody's (docs/decisions/0065)."""

import logging
from datetime import timedelta

from django.db import DatabaseError, transaction
from django.db.models import Q
from django.db.models.functions import Now

from system_mail.reputation.rates import DAYS, Rates, read_rates
from system_mail.reputation.thresholds import Limit, limits
from system_mail.reputation.warning_emails import send_paused, send_warning
from workspaces.account_status import suspend_workspace
from workspaces.audit import Act, note
from workspaces.models import Workspace

log = logging.getLogger("postrider.reputation")

ADVICE = "Clean your lists, then ask whoever runs this service."


def judge_all() -> None:
    """Look at every workspace that may send; any number of these may run at once."""
    if any(limit.warn or limit.pause for limit in limits()):
        for rates in read_rates():
            try:
                _judge(rates)
            except DatabaseError:
                # A lock that was not had in time: the next sweep comes back to it, the others do not wait.
                log.exception("a workspace could not be judged", extra={"data": {"workspace": rates.workspace_id}})


def _judge(rates: Rates) -> None:
    for limit in limits():
        if limit.pauses(rates):
            _pause(rates, limit)
            return
    for limit in limits():
        if limit.warns(rates):
            _warn(rates, limit)


@transaction.atomic
def _pause(rates: Rates, limit: Limit) -> None:
    # Whoever was suspended meanwhile is told by that, and whoever was let go again is judged by later mail.
    standing = Workspace.objects.filter(id=rates.workspace_id, suspended_at=None, judged_from=rates.judged_from)
    workspace = standing.select_for_update(no_key=True).first()
    if workspace is None:
        return
    figure = limit.figure(rates, limit.pause)
    suspend_workspace(workspace, reason=f"{figure} {ADVICE}")
    send_paused(workspace, figure=figure)
    log.warning("a workspace is suspended", extra={"data": {"workspace": workspace.id, "figure": figure}})


@transaction.atomic
def _warn(rates: Rates, limit: Limit) -> None:
    """Tell the owners, once in DAYS days."""
    is_due = Q(**{limit.warned_at: None}) | Q(**{f"{limit.warned_at}__lt": Now() - timedelta(days=DAYS)})
    standing = Workspace.objects.filter(is_due, id=rates.workspace_id, suspended_at=None, judged_from=rates.judged_from)
    if not standing.update(**{limit.warned_at: Now()}):
        return
    workspace = Workspace.objects.get(id=rates.workspace_id)
    figure = limit.figure(rates, limit.warn)
    note(workspace, Act.OWNERS_WARNED, about=figure)
    send_warning(workspace, figure=figure)
