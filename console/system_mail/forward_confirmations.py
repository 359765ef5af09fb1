"""Emails that ask an address whether a workspace may forward received email to it (docs/decisions/0243).

They are system emails: the link confirms, and emails of the workspace can be read with its API keys.
"""

from datetime import timedelta
from typing import Any

from django.db.models.functions import Now
from django.dispatch import receiver
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from console.system_mail.models import SystemMail, SystemMailKind
from console.system_mail.services import in_language_of, queue_system_mail
from core.workspaces.models import User
from receiving.forwarding.targets import confirmation_requested, target_url
from receiving.models import ForwardTarget

# To one address, from all workspaces together: any workspace can name any address.
DAILY_LIMIT = 3
CONFIRMATION = _("""The workspace "{workspace}" wants to forward email that it receives to {address}.

If you agree, open this link and confirm:

{url}

Without your confirmation, nothing is forwarded. You can confirm for 7 days; later, the same link ends the forwarding.
""")


@receiver(confirmation_requested)
def send_forward_confirmation(target: ForwardTarget, **signal: Any) -> None:
    """Queue the email with the link of a target, at most DAILY_LIMIT within 24 hours."""
    earlier = SystemMail.objects.filter(kind=SystemMailKind.PROOF, recipient=target.address)
    if earlier.filter(created_at__gt=Now() - timedelta(days=1)).count() >= DAILY_LIMIT:
        return
    workspace = " ".join(target.workspace.name.split())
    with in_language_of(User.objects.filter(email=target.address).first()):
        text = str(CONFIRMATION).format(workspace=workspace, address=target.address, url=target_url(target))
        subject = gettext("Confirm the forwarding of email")
        queue_system_mail(to=target.address, kind=SystemMailKind.PROOF, subject=subject, text=text)
