"""Erasure of a deleted workspace: all of its data, in small batches (docs/decisions/0119).

Each batch is a transaction. A run that is interrupted deletes less, and the next one continues.
"""

import logging
from collections.abc import Iterator
from datetime import timedelta

from django.db import connection, transaction
from django.utils import timezone

from alerts.models import Alert
from console.privacy.exporting.erasure import delete_all_exports
from console.privacy.models import Erasure, SubjectExport
from core.lib.ids import to_uuid
from core.lib.sql import delete_batches
from core.workspaces.deletion import ended_workspaces
from core.workspaces.models import ApiKey, Invitation, Membership
from domains.models import Domain, TrackingHost
from domains.reports.deletion import delete_workspace_reports
from emails.models import ApprovalNotice, Email
from emails.upkeep.retention import delete_all_emails
from events.tasks import delete_expired as delete_expired_events
from interfaces.inbound.inbox.retention import delete_expired_mail
from receiving.deletion import delete_expired_emails as delete_received_emails
from receiving.models import ForwardTarget, InboundRoute, ReceivingUsage, SenderBlock, SharedAddress
from streams.models import Stream
from templates_app.models import Template, TemplateSet, TemplateVersion
from webhooks.models import Webhook, WebhookEvent

BATCH_SIZE = 1000
# The clocks of other processes may be ahead.
LATER = timedelta(days=1)
DELETE_ROWS = "DELETE FROM {0} WHERE ctid = ANY(ARRAY(SELECT ctid FROM {0} WHERE workspace_id = %s LIMIT %s))"
# Tables with many rows per workspace. Deltas come before the counters, into which they are folded.
TABLES = (
    "emails_acceptance",
    "emails_emailbatch",
    "workspaces_workspaceevent",
    "suppressions_suppression",
    "analytics_tallydelta",
    "analytics_tally",
    "analytics_tallyday",
    "request_log_apirequest",
    "receiving_networkusage",
    "workspaces_usage",
    "workspaces_auditentry",
)
# Tables with at most some hundred rows per workspace.
SMALL = (
    InboundRoute, ForwardTarget, SenderBlock, SharedAddress, ReceivingUsage, TrackingHost, Domain, Stream, Alert,
    Webhook, ApiKey, Membership, Invitation, Erasure, SubjectExport, ApprovalNotice,
)  # fmt: skip
# Avoids Django's cascade, which would scan tables that have no index by workspace.
DELETE_WORKSPACE = "DELETE FROM workspaces_workspace WHERE id = %s AND deletes_at <= clock_timestamp()"

log = logging.getLogger("postrider.accounts")


def erase_workspace(workspace_id: str, _age: timedelta) -> Iterator[None]:
    """Delete all data of a workspace whose grace period has ended; yield after each transaction."""
    if not _has_ended(workspace_id):
        return
    yield from delete_all_emails(workspace_id)
    if Email.objects.filter(workspace=workspace_id).exists():
        # Another process locks some of them; the next run deletes them.
        return
    yield from _delete_webhook_events(workspace_id)
    yield from delete_received_emails(workspace_id, -LATER)
    yield from delete_expired_mail(workspace_id, -LATER)
    yield from delete_expired_events(workspace_id, -LATER)
    yield from delete_workspace_reports(workspace_id)
    for table in TABLES:
        yield from _delete_rows(table, workspace_id)
    yield from _delete_templates(workspace_id)
    yield from delete_all_exports(workspace_id)
    for model in SMALL:
        model.objects.filter(workspace=workspace_id).delete()
        yield
    with connection.cursor() as cursor:
        cursor.execute(DELETE_WORKSPACE, [to_uuid(workspace_id, prefix="ws_")])
    log.info("a deleted workspace was erased", extra={"data": {"workspace": workspace_id}})
    yield


@transaction.atomic
def _has_ended(workspace_id: str) -> bool:
    """Return whether the grace period has ended, after waiting for a restoration that is not committed yet."""
    return ended_workspaces().filter(id=workspace_id).select_for_update(no_key=True).first() is not None


def _delete_webhook_events(workspace_id: str) -> Iterator[None]:
    before = timezone.now() + LATER
    while WebhookEvent.objects.delete_older(workspace_id, before=before, limit=BATCH_SIZE):
        yield


def _delete_rows(table: str, workspace_id: str) -> Iterator[None]:
    values = [to_uuid(workspace_id, prefix="ws_"), BATCH_SIZE]
    return delete_batches(DELETE_ROWS.format(table), values, size=BATCH_SIZE)


def _delete_templates(workspace_id: str) -> Iterator[None]:
    """Delete the templates with their versions and sets, one template per transaction."""
    for template in Template.objects.filter(workspace=workspace_id):
        with transaction.atomic():
            version_ids = [*TemplateVersion.objects.filter(template=template).values_list("id", flat=True)]
            set_ids = [*TemplateSet.objects.filter(template=template).values_list("id", flat=True)]
            template.delete()
            TemplateSet.objects.filter(id__in=set_ids).delete()
            TemplateVersion.objects.filter(id__in=version_ids).delete()
        yield
