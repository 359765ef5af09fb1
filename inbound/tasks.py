"""Sweeps of what was told: both may be lost or doubled."""

from celery import shared_task

from inbound.processing import process_all, purge_all


@shared_task(name="inbound.tasks.process", ignore_result=True)
def process() -> None:
    """Process what a receiver left behind, and what providers told."""
    process_all()


@shared_task(name="inbound.tasks.purge", ignore_result=True)
def purge() -> None:
    """Delete what was settled long ago."""
    purge_all()
