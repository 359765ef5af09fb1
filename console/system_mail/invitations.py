"""Invitation emails. Links use PUBLIC_URL, never the Host header."""

from urllib.parse import urlencode

from django.conf import settings
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from console.system_mail.models import SystemMailKind
from console.system_mail.services import in_language_of, queue_system_mail
from core.workspaces.members import invitation_token
from core.workspaces.models import Invitation, User

INVITATION = _("""{by} invited you to join the workspace "{workspace}" on {service}, a transactional email
service. To join as {role}, open this link within seven days:

{url}

If you were not expecting this invitation, you can ignore this email.
""")


def send_invitation(invitation: Invitation) -> None:
    with in_language_of(User.objects.filter(email=invitation.email).first()):
        _send_invitation(invitation)


def _send_invitation(invitation: Invitation) -> None:
    workspace = " ".join(invitation.workspace.name.split())
    text = str(INVITATION).format(
        by=invitation.invited_by or gettext("A workspace owner"),
        workspace=workspace,
        service=settings.SYSTEM_NAME,
        role=gettext("an owner") if invitation.role == "owner" else gettext("a member"),
        url=link("invitation", token=invitation_token(invitation)),
    )
    subject = gettext("Join %(workspace)s on %(service)s") % {"workspace": workspace, "service": settings.SYSTEM_NAME}
    queue_system_mail(to=invitation.email, kind=SystemMailKind.INVITATION, subject=subject, text=text)


def link(name: str, **query: str) -> str:
    """Return the URL of a dashboard page."""
    url = f"{settings.PUBLIC_URL}{reverse(f'dashboard:{name}')}"
    return f"{url}?{urlencode(query)}" if query else url
