"""The sweep of reputations; it may be lost or doubled."""

from celery import shared_task

from reputation.services import judge_all


@shared_task(name="reputation.tasks.judge", ignore_result=True)
def judge() -> None:
    """Warn or suspend the workspaces whose mail comes back or is complained about too often."""
    judge_all()
