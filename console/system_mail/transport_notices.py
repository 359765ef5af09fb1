"""Emails to the staff about transports that are paused, used again, or whose address is on a block list."""

from typing import Any

from django.conf import settings
from django.dispatch import receiver
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from console.system_mail.models import SystemMailKind
from console.system_mail.services import in_language_of, queue_system_mail
from console.system_mail.workspace_emails import staff_to_notify
from emails.sending.transport_status import address_listed, transport_changed

PAUSED = _("""The transport "{name}" is paused after failures:

{error}

Email is sent by the next transport of its routes, or waits if there is none. The transport is tried again by itself;
refused logins need new credentials and a restart of the workers.

{url}
""")
RESUMED = _("""The transport "{name}" works again, and is used for new email.

{url}
""")
LISTED = _("""Receivers refuse email of the transport "{name}", because its address is on a block list ({listed_by}):

{reply}

The refused email waits for four hours, other email to these receivers until they accept one again. The reply usually
names the page where the removal can be requested. Find the cause first: a list takes an address again after more spam.

{url}
""")


@receiver(transport_changed)
def notify_staff_of_transport(name: str, is_paused: bool, error: str, **signal: Any) -> None:  # noqa: FBT001 - of a signal
    """Queue an email to the staff about a transport."""
    for member in staff_to_notify():
        with in_language_of(member):
            paused, resumed = gettext("The transport %(name)s is paused"), gettext("The transport %(name)s works again")
            subject = (paused if is_paused else resumed) % {"name": name}
            text = str(PAUSED if is_paused else RESUMED).format(name=name, error=error, url=_url())
            queue_system_mail(to=member.email, kind=SystemMailKind.NOTICE, subject=subject, text=text)


@receiver(address_listed)
def notify_staff_of_listing(name: str, listed_by: str, reply: str, **signal: Any) -> None:
    """Queue an email to the staff about a block list that has an address of a transport."""
    for member in staff_to_notify():
        with in_language_of(member):
            subject = gettext("The transport %(name)s is on a block list: %(listed_by)s") % {
                "name": name,
                "listed_by": listed_by,
            }
            text = LISTED.format(name=name, listed_by=listed_by, reply=reply, url=_url())
            queue_system_mail(to=member.email, kind=SystemMailKind.NOTICE, subject=subject, text=text)


def _url() -> str:
    return f"{settings.PUBLIC_URL}{reverse('admin:transports')}"
