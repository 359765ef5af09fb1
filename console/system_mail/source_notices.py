"""Emails to the staff about own addresses that a block list has (docs/decisions/0349)."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.dispatch import receiver
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from console.system_mail.models import SystemMailKind
from console.system_mail.services import in_language_of, queue_system_mail
from console.system_mail.workspace_emails import staff_to_notify
from emails.models import SourceListing
from emails.sources.watch import sources_listed

# Listings that an email names; a list may take a whole network at once.
MAX_SHOWN = 20

LISTED = _("""Sending addresses are on block lists since the last check:

{listings}

Receivers that use these lists refuse or defer email from these addresses. Find the cause first, then request the
removal: a list takes an address again after more spam.

{url}
""")


@receiver(sources_listed)
def notify_staff_of_sources(listings: Sequence[SourceListing], **signal: Any) -> None:
    """Queue one email to the staff about all new listings of a run."""
    addresses = ", ".join(dict.fromkeys(listing.source.address for listing in listings[:MAX_SHOWN]))
    for member in staff_to_notify():
        with in_language_of(member):
            text = LISTED.format(listings=_describe(listings), url=f"{settings.PUBLIC_URL}{reverse('admin:sources')}")
            subject = gettext("On a block list: %(addresses)s") % {"addresses": addresses}
            queue_system_mail(to=member.email, kind=SystemMailKind.NOTICE, subject=subject, text=text)


def _describe(listings: Sequence[SourceListing]) -> str:
    """Return a paragraph for each listing. The text of a list is quoted, so that it does not become a link."""
    parts = []
    for listing in listings[:MAX_SHOWN]:
        lines = [f"{listing.source.address}: {listing.name} ({listing.codes})"]
        lines += [gettext("Text of the list: “%(text)s”") % {"text": listing.text}] if listing.text else []
        lines += [gettext("Removal: %(url)s") % {"url": listing.removal_url}] if listing.removal_url else []
        parts.append("\n".join(lines))
    if more := len(listings) - MAX_SHOWN:
        parts += [gettext("And %(count)s more.") % {"count": more}] if more > 0 else []
    return "\n\n".join(parts)
