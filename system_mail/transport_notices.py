"""Emails to the staff about transports that are paused after failures, or used again."""

from typing import Any

from django.conf import settings
from django.dispatch import receiver
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from emails.sending.transport_status import transport_changed
from system_mail.models import SystemMailKind
from system_mail.services import in_language_of, queue_system_mail
from system_mail.workspace_emails import MAX_STAFF_NOTICES
from workspaces.models import User

PAUSED = _("""The transport "{name}" is paused after failures:

{error}

Email is sent by the next transport of its routes, or waits if there is none. The transport is tried again by itself;
refused logins need new credentials and a restart of the workers.

{url}
""")
RESUMED = _("""The transport "{name}" works again, and is used for new email.

{url}
""")


@receiver(transport_changed)
def notify_staff_of_transport(name: str, is_paused: bool, error: str, **signal: Any) -> None:  # noqa: FBT001 - of a signal
    """Queue an email to the staff about a transport."""
    url = f"{settings.PUBLIC_URL}{reverse('admin:transports')}"
    for member in User.objects.filter(is_active=True, is_staff=True).order_by("id")[:MAX_STAFF_NOTICES]:
        with in_language_of(member):
            paused, resumed = gettext("The transport %(name)s is paused"), gettext("The transport %(name)s works again")
            subject = (paused if is_paused else resumed) % {"name": name}
            text = str(PAUSED if is_paused else RESUMED).format(name=name, error=error, url=url)
            queue_system_mail(to=member.email, kind=SystemMailKind.NOTICE, subject=subject, text=text)
