"""Sweeps of the counters."""

from celery import shared_task

from analytics import counters


@shared_task(name="analytics.tasks.fold", ignore_result=True)
def fold() -> None:
    """Fold until nothing is left to fold."""
    while counters.fold() == counters.FOLD_AT_ONCE:
        pass
