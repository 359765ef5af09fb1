"""What the owners of a workspace are told when its mail comes back, or is called spam, too often."""

from django.conf import settings
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from system_mail.services import Kind, queue_mail
from workspaces.models import Membership, User, Workspace

WARNING = _("""The mail of your workspace "{workspace}" does badly:

{figure}

Mail hosts take this for a sign of spam and begin to refuse the mail of everybody who sends from here. Write only to
people who asked for it and whose address they have confirmed, and leave out those who did not open your mail for long.
A workspace whose figures get worse may be suspended.

{url}
""")
PAUSED = _("""Sending is suspended for your workspace "{workspace}":

{figure}

No new mail is accepted, and queued mail waits; nothing is lost, and everything else works. Find out where these
addresses came from and take them out of your lists, then ask whoever runs this service to lift the suspension.

{url}
""")


def send_warning(workspace: Workspace, *, figure: str) -> None:
    subject = gettext("The mail of %(workspace)s does badly") % {"workspace": workspace.name}
    _send(workspace, subject=subject, text=str(WARNING), figure=figure)


def send_paused(workspace: Workspace, *, figure: str) -> None:
    subject = gettext("Sending is suspended for %(workspace)s") % {"workspace": workspace.name}
    _send(workspace, subject=subject, text=str(PAUSED), figure=figure)


def _send(workspace: Workspace, *, subject: str, text: str, figure: str) -> None:
    """Queue a mail to each owner, in the caller's transaction."""
    filled = text.format(
        workspace=" ".join(workspace.name.split()),
        figure=figure,
        url=f"{settings.PUBLIC_URL}{reverse('dashboard:index')}",
    )
    owned = {"memberships__workspace": workspace, "memberships__role": Membership.Role.OWNER}
    for owner in User.objects.filter(is_active=True, **owned):
        queue_mail(to=owner.email, kind=Kind.NOTICE, subject=subject, text=filled)
