"""Email tasks: the wake-up and the retention sweep. They take no arguments and may be lost or run twice."""

from celery import shared_task

from core.workspaces.retention import run_alone, run_batches, sweep
from emails.recipient_caps import delete_ended_windows
from emails.sending.emails_work import emails_processor
from emails.sources.watch import watch_sources
from emails.tls_policies.refresh import delete_ended_policies, refresh_policies
from emails.upkeep.content_removal import apply_changed_retention, remove_due_contents
from emails.upkeep.retention import delete_empty_batches, delete_expired_emails, delete_unused_versions
from emails.upkeep.unused_pairs import delete_unused_pairs


@shared_task(name="emails.tasks.drain", ignore_result=True)
def process_queue() -> None:
    """Send all due emails."""
    emails_processor().run_notified()


@shared_task(name="emails.tasks.remove_contents", ignore_result=True)
def remove_contents() -> None:
    """Remove the contents that are kept for less time than their emails."""
    run_alone("changed content retention", apply_changed_retention())
    run_alone("contents", remove_due_contents())


@shared_task(name="emails.tasks.expire", ignore_result=True)
def expire() -> None:
    """Delete expired emails, and versions, batches, paces, windows of caps and TLS policies that are not used."""
    sweep("emails", delete_expired_emails)
    run_batches(delete_unused_versions())
    run_batches(delete_empty_batches())
    run_batches(delete_unused_pairs())
    run_batches(delete_ended_windows())
    run_batches(delete_ended_policies())


@shared_task(name="emails.tasks.watch", ignore_result=True)
def watch() -> None:
    """Look up own addresses in block lists and their reverse names."""
    watch_sources()


@shared_task(name="emails.tasks.refresh_policies", ignore_result=True)
def refresh_tls_policies() -> None:
    """Fetch the MTA-STS policies again that were fetched a day ago."""
    refresh_policies()
