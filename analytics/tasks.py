"""Sweeps of the counters."""

from celery import shared_task

from analytics import tally


@shared_task(name="analytics.tasks.fold", ignore_result=True)
def fold() -> None:
    """Fold until nothing is left to fold."""
    while tally.fold() == tally.FOLD_AT_ONCE:
        pass
