"""Emails to the owners of a workspace with a high bounce or complaint rate."""

from django.utils.translation import gettext_lazy as _

from console.system_mail.workspace_emails import notify_owners
from core.lib.coded_texts import CodedText
from core.workspaces.models import Workspace

WARNING = _("""The workspace "{workspace}" has a high bounce or complaint rate:

{summary}

Mailbox providers treat such rates as a sign of spam and may start to reject email from every sender on this service.
Please send only to people who asked for your emails and confirmed their address, and remove recipients who have not
opened your emails for a long time. If the rate rises further, sending may be suspended.

{url}
""")
SUSPENSION = _("""Sending is suspended for the workspace "{workspace}":

{summary}

New emails are refused and queued emails are paused. Nothing is lost, and everything else keeps working. Please find out
where these addresses came from and remove them from your lists. Then ask the operator of this service to lift the
suspension.

{url}
""")
PAUSE = _("""The stream "{stream}" of the workspace "{workspace}" is paused:

{summary}

New emails of this stream are refused, and queued ones are held. Nothing is lost, and other streams are not affected.
Please find out where these addresses came from and remove them from your lists. Then ask the operator of this service
to resume the stream.

{url}
""")


def send_warning(workspace: Workspace, *, summary: CodedText) -> None:
    notify_owners(workspace, subject=_("High bounce or complaint rate in {workspace}"), text=WARNING, summary=summary)


def send_suspension(workspace: Workspace, *, summary: CodedText) -> None:
    notify_owners(workspace, subject=_("Sending is suspended for {workspace}"), text=SUSPENSION, summary=summary)


def send_pause(workspace: Workspace, *, summary: CodedText, stream: str) -> None:
    subject = _("A stream of {workspace} is paused")
    notify_owners(workspace, subject=subject, text=PAUSE, summary=summary, stream=stream)
