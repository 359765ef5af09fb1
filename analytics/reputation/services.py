"""Reputation checks: warn and suspend workspaces, and pause streams, with high bounce or complaint rates.

See docs/decisions/0065 and 0184.
"""

import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.db import DatabaseError, transaction
from django.db.models import Q
from django.db.models.functions import Now

from analytics.reputation.rates import PERIOD_DAYS, ReputationRates, read_rates, read_stream_rates
from analytics.reputation.thresholds import RateThreshold, rate_thresholds
from core.lib.coded_texts import CodedText, join_sentences
from core.workspaces.account_status import suspend_workspace
from core.workspaces.audit import AuditAction, record_action
from core.workspaces.models import Workspace
from streams.models import Stream
from streams.services import pause_stream

log = logging.getLogger("postrider.reputation")

# Notifies the owners of a workspace of its summary.
Notify = Callable[..., Any]


def check_reputations(*, send_warning: Notify, send_suspension: Notify, send_pause: Notify) -> None:
    """Check every bulk stream and every workspace that may send. Concurrent runs are safe.

    Streams come first: the emails of a paused one do not count against its workspace. send_warning, send_suspension,
    send_pause: send an email about a workspace or its stream, with a summary, in the caller's transaction.
    """
    if any(threshold.warn_percent or threshold.suspend_percent for threshold in rate_thresholds()):
        for rates in read_stream_rates():
            _isolate(_check_stream, rates, send_pause)
        for rates in read_rates():
            _isolate(_check, rates, send_warning, send_suspension)


def _isolate(check: Notify, rates: ReputationRates, *notify: Notify) -> None:
    try:
        check(rates, *notify)
    except DatabaseError:
        # A lock timeout: the next run checks this workspace again, and the others continue.
        data = {"workspace": rates.workspace_id, "stream": rates.stream}
        log.exception("a workspace could not be checked", extra={"data": data})


def _check_stream(rates: ReputationRates, send_pause: Notify) -> None:
    for threshold in rate_thresholds():
        if threshold.is_above(threshold.suspend_percent, rates):
            _pause(rates, threshold, send_pause)
            return


@transaction.atomic
def _pause(rates: ReputationRates, threshold: RateThreshold, send_pause: Notify) -> None:
    # Skip a stream that was paused in the meantime, or resumed: judged_from then changed.
    unchanged = Stream.objects.filter(
        workspace=rates.workspace_id, slug=rates.stream, paused_at=None, judged_from=rates.judged_from
    )
    stream = unchanged.select_for_update(of=("self",)).select_related("workspace").first()
    if stream is None:
        return
    summary = threshold.summary(rates, threshold.suspend_percent)
    reason = join_sentences(summary, CodedText("reputation.advice"))
    pause_stream(stream.workspace, stream.slug, reason=reason)
    send_pause(stream.workspace, summary=summary, stream=stream.slug)
    data = {"workspace": stream.workspace_id, "stream": stream.slug, "figure": summary}
    log.warning("a stream was paused", extra={"data": data})


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
