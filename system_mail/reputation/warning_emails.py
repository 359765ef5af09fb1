"""Warning emails to the owners of a workspace with a high bounce or complaint rate."""

from django.conf import settings
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from system_mail.models import SystemMailKind
from system_mail.services import in_language_of, queue_system_mail
from workspaces.models import Membership, User, Workspace

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


def send_warning(workspace: Workspace, *, summary: Promise) -> None:
    _send(workspace, subject=_("High bounce or complaint rate in {workspace}"), text=WARNING, summary=summary)


def send_suspension(workspace: Workspace, *, summary: Promise) -> None:
    _send(workspace, subject=_("Sending is suspended for {workspace}"), text=SUSPENSION, summary=summary)


def _send(workspace: Workspace, *, subject: Promise, text: Promise, summary: Promise) -> None:
    """Queue a system email to each owner, in their language and the caller's transaction."""
    name, url = " ".join(workspace.name.split()), f"{settings.PUBLIC_URL}{reverse('dashboard:index')}"
    owned = {"memberships__workspace": workspace, "memberships__role": Membership.Role.OWNER}
    for owner in User.objects.filter(is_active=True, **owned):
        with in_language_of(owner):
            filled = str(text).format(workspace=name, summary=summary, url=url)
            title = str(subject).format(workspace=name)
            queue_system_mail(to=owner.email, kind=SystemMailKind.NOTICE, subject=title, text=filled)
