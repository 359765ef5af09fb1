"""Counter tasks."""

from celery import shared_task

from core.counters import counters


@shared_task(name="analytics.tasks.fold", ignore_result=True)
def fold() -> None:
    """Fold all deltas, in batches."""
    while counters.fold() == counters.FOLD_BATCH_SIZE:
        pass
