"""System emails to the owners of a workspace, and those about its deletion and restoration."""

from datetime import UTC, datetime
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.dispatch import receiver
from django.urls import reverse
from django.utils.formats import date_format
from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from console.system_mail.models import SystemMailKind
from console.system_mail.services import in_language_of, queue_system_mail
from core.lib.translation import translate
from core.workspaces.deletion import deletion_changed
from core.workspaces.identities import last_owner_kept
from core.workspaces.models import Membership, User, Workspace

DELETED = _("""The operator of this service deleted the workspace "{workspace}".

Its API keys no longer work, and its queued and scheduled emails are paused. All data of the workspace will be erased on
{deletes_at} UTC. The operator can restore it until then.

{url}
""")
RESTORED = _("""The operator of this service restored the workspace "{workspace}". Its data is kept.

Its API keys work again. Unless sending is suspended, queued emails are sent, and scheduled emails whose time has
passed.

{url}
""")
LAST_OWNER = _("""The identity provider no longer gives {email} a role in the workspace "{workspace}".

The account is its last owner, and still owns it. Make another member an owner, or remove the workspace:

{url}
""")
MAX_STAFF_NOTICES = 50


def notify_owners(workspace: Workspace, *, subject: Promise, text: Promise, **values: object) -> None:
    """Queue a system email to each owner, in their language and the caller's transaction.

    subject, text: with the placeholders workspace and the names of `values`, and the text with url; a time is
    formatted as UTC.
    """
    name, url = " ".join(workspace.name.split()), f"{settings.PUBLIC_URL}{reverse('dashboard:index')}"
    owned = {"memberships__workspace": workspace, "memberships__role": Membership.Role.OWNER}
    for owner in User.objects.filter(is_active=True, **owned):
        with in_language_of(owner):
            shown = {key: _format_value(value) for key, value in values.items()}
            filled = str(text).format(workspace=name, url=url, **shown)
            title = str(subject).format(workspace=name, **shown)
            queue_system_mail(to=owner.email, kind=SystemMailKind.NOTICE, subject=title, text=filled)


@receiver(deletion_changed)
def send_deletion_email(workspace: Workspace, **signal: Any) -> None:
    """Queue the emails about a workspace that was deleted or restored."""
    if workspace.deletes_at:
        subject, text = _("{workspace} was deleted"), DELETED
    else:
        subject, text = _("{workspace} was restored"), RESTORED
    notify_owners(workspace, subject=subject, text=text, deletes_at=workspace.deletes_at)


@receiver(last_owner_kept)
def notify_staff_of_last_owner(workspace: Workspace, user: User, **signal: Any) -> None:
    """Queue an email to the staff about an owner without a claim, who was kept because there is no other."""
    url = f"{settings.PUBLIC_URL}{reverse('admin:workspaces_workspace_change', args=[workspace.id])}"
    name = " ".join(workspace.name.split())
    for member in staff_to_notify():
        with in_language_of(member):
            subject = gettext("The last owner of %(workspace)s has no role any more") % {"workspace": name}
            text = str(LAST_OWNER).format(email=user.email, workspace=name, url=url)
            queue_system_mail(to=member.email, kind=SystemMailKind.NOTICE, subject=subject, text=text)


def staff_to_notify() -> QuerySet[User]:
    return User.objects.filter(is_active=True, is_staff=True).order_by("id")[:MAX_STAFF_NOTICES]


def _format_value(value: object) -> str:
    if isinstance(value, datetime):
        return date_format(value.astimezone(UTC), "DATETIME_FORMAT")
    return translate(str(value))
