"""Emails to the owners of a workspace about alerts that begin and end (docs/decisions/0246)."""

from django.utils.translation import gettext_lazy as _

from alerts.models import Alert
from console.system_mail.workspace_emails import notify_owners
from core.lib.coded_texts import CodedText
from events.kinds import EventKind

TRIGGERED = _("""An alert of the workspace "{workspace}" began: {name}.

{summary}

You get another email when it ends. The page Alerts of the dashboard lists all alerts; there you can change or delete
this one.

{url}
""")
RESOLVED = _("""An alert of the workspace "{workspace}" ended: {name}.

{summary}

{url}
""")


def notify_of_alert(alert: Alert, *, kind: EventKind, summary: CodedText, name: CodedText) -> None:
    """Queue an email to each owner about an alert that began or ended."""
    if kind == EventKind.ALERT_TRIGGERED:
        subject, text = _("Alert in {workspace}: {name}"), TRIGGERED
    else:
        subject, text = _("Alert ended in {workspace}: {name}"), RESOLVED
    notify_owners(alert.workspace, subject=subject, text=text, summary=summary, name=name)
