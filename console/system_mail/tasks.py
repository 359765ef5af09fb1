"""System email tasks: send, delete old rows, check reputations, alerts, approvals, canaries, reports of domains.

Any may run twice.
"""

from celery import shared_task

from alerts.checks import check_alerts
from analytics.reputation.services import check_reputations
from console.system_mail.alert_emails import notify_of_alert
from console.system_mail.approval_requests import request_approvals
from console.system_mail.canary.runs import check_canaries
from console.system_mail.domain_notices import notify_of_domain
from console.system_mail.queue import delete_expired
from console.system_mail.reputation_warnings import send_pause, send_suspension, send_warning
from console.system_mail.sending import system_mail_processor
from console.system_mail.tls_reports.runs import send_tls_reports
from core.workspaces.retention import run_alone
from domains.reports.notices import check_reported_domains
from emails.approvals import cancel_lapsed


@shared_task(name="system_mail.tasks.drain", ignore_result=True)
def process_queue() -> None:
    """Send everything that is due."""
    system_mail_processor().run_notified()


@shared_task(name="system_mail.tasks.expire", ignore_result=True)
def expire() -> None:
    """Delete rows past their retention."""
    delete_expired()


@shared_task(name="reputation.tasks.judge", ignore_result=True)
def check_workspaces() -> None:
    """Warn or suspend workspaces, and pause streams, with high bounce or complaint rates."""
    check_reputations(send_warning=send_warning, send_suspension=send_suspension, send_pause=send_pause)


@shared_task(name="alerts.tasks.check", ignore_result=True)
def check_watched_values() -> None:
    """Notify owners and webhooks of alerts that begin or end."""
    check_alerts(notify=notify_of_alert)


@shared_task(name="reports.tasks.check", ignore_result=True)
def check_reports() -> None:
    """Notify owners and webhooks of what DMARC reports say about domains."""
    check_reported_domains(notify=notify_of_domain)


@shared_task(name="approvals.tasks.check", ignore_result=True)
def check_approvals() -> None:
    """Cancel emails that nobody has approved in time, and ask the approvers of new ones."""
    run_alone("approvals", cancel_lapsed())
    request_approvals()


@shared_task(name="system_mail.tasks.check_canaries", ignore_result=True)
def check_canary_runs() -> None:
    """Send the canary that is due, and find out whether earlier ones came back."""
    check_canaries()


@shared_task(name="system_mail.tasks.send_tls_reports", ignore_result=True)
def send_reports() -> None:
    """Make the TLS reports of yesterday, and send those that are due."""
    send_tls_reports()
