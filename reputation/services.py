"""Reputation checks: warn and suspend workspaces with high bounce or complaint rates (docs/decisions/0065)."""

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.db import DatabaseError, transaction
from django.db.models import Q
from django.db.models.functions import Now

from lib.coded_texts import CodedText, join_sentences
from reputation.rates import PERIOD_DAYS, ReputationRates, read_rates
from reputation.thresholds import RateThreshold, rate_thresholds
from workspaces.account_status import suspend_workspace
from workspaces.audit import AuditAction, record_action
from workspaces.models import Workspace

log = logging.getLogger("postrider.reputation")

# Notifies the owners of a workspace of its summary.
Notify = Callable[..., Any]


def check_reputations(*, send_warning: Notify, send_suspension: Notify) -> None:
    """Check every workspace that may send. Concurrent runs are safe.

    send_warning, send_suspension: send an email about a workspace, with a summary, in the caller's transaction.
    """
    if any(threshold.warn_percent or threshold.suspend_percent for threshold in rate_thresholds()):
        for rates in read_rates():
            try:
                _check(rates, send_warning, send_suspension)
            except DatabaseError:
                # A lock timeout: the next run checks this workspace again, and the others continue.
                log.exception("a workspace could not be checked", extra={"data": {"workspace": rates.workspace_id}})


def _check(rates: ReputationRates, send_warning: Notify, send_suspension: Notify) -> None:
    for threshold in rate_thresholds():
        if threshold.is_above(threshold.suspend_percent, rates):
            _suspend(rates, threshold, send_suspension)
            return
    for threshold in rate_thresholds():
        if threshold.is_above(threshold.warn_percent, rates):
            _warn(rates, threshold, send_warning)


@transaction.atomic
def _suspend(rates: ReputationRates, threshold: RateThreshold, send_suspension: Notify) -> None:
    # Skip a workspace that was suspended in the meantime, or whose suspension was lifted: judged_from then changed.
    unchanged = Workspace.objects.filter(id=rates.workspace_id, suspended_at=None, judged_from=rates.judged_from)
    workspace = unchanged.select_for_update(no_key=True).first()
    if workspace is None:
        return
    summary = threshold.summary(rates, threshold.suspend_percent)
    suspend_workspace(workspace, reason=join_sentences(summary, CodedText("reputation.advice")))
    send_suspension(workspace, summary=summary)
    log.warning("a workspace was suspended", extra={"data": {"workspace": workspace.id, "figure": summary}})


@transaction.atomic
def _warn(rates: ReputationRates, threshold: RateThreshold, send_warning: Notify) -> None:
    """Warn the owners, at most once in PERIOD_DAYS days."""
    is_due = Q(**{threshold.warned_at: None}) | Q(**{f"{threshold.warned_at}__lt": Now() - timedelta(days=PERIOD_DAYS)})
    unchanged = Workspace.objects.filter(
        is_due, id=rates.workspace_id, suspended_at=None, judged_from=rates.judged_from
    )
    if not unchanged.update(**{threshold.warned_at: Now()}):
        return
    workspace = Workspace.objects.get(id=rates.workspace_id)
    summary = threshold.summary(rates, threshold.warn_percent)
    record_action(workspace, AuditAction.OWNERS_WARNED, about=summary)
    send_warning(workspace, summary=summary)
