"""Emails that ask the approvers of a workspace to decide about emails that wait (docs/decisions/0390).

The statement that accepts such an email marks the notice of its workspace, so that none is missed.
"""

from collections.abc import Sequence
from datetime import timedelta

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Now
from django.urls import reverse
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from console.system_mail.invitations import link
from console.system_mail.models import SystemMailKind
from console.system_mail.services import in_language_of, queue_system_mail
from core.workspaces.models import User, Workspace
from emails.approvals import approval_token, approvers_of
from emails.models import ApprovalNotice, Email

# An approver gets at most one in this time for a workspace.
NOTICE_EVERY = timedelta(minutes=15)
# The emails with a link of their own, the newest ones.
MOST_LISTED = 10
MAX_SHOWN = 120
REQUEST = _("""Emails of the workspace "{workspace}" wait for your approval. Nobody gets them before that, and they are
cancelled seven days after they were accepted. Each link shows the email with buttons to approve or reject it.

{emails}

All emails that wait are listed in the dashboard:

{url}
""")


def request_approvals() -> None:
    """Queue an email to each approver of the workspaces with new emails that wait."""
    due = ApprovalNotice.objects.filter(Q(sent_at=None) | Q(sent_at__lt=Now() - NOTICE_EVERY), has_new=True)
    for notice in due.order_by(F("sent_at").asc(nulls_first=True)).values_list("workspace_id", flat=True):
        _request_for(notice)


@transaction.atomic
def _request_for(workspace_id: str) -> None:
    """Queue the emails of a workspace, unless another process does it at the same time."""
    notices = ApprovalNotice.objects.select_for_update(skip_locked=True).filter(workspace=workspace_id, has_new=True)
    if not notices.exists():
        return
    ApprovalNotice.objects.filter(workspace=workspace_id).update(has_new=False, sent_at=Now())
    waiting = list(Email.objects.filter(workspace=workspace_id).held().defer("template_data")[:MOST_LISTED])
    workspace = Workspace.objects.get(id=workspace_id)
    for approver in approvers_of(workspace_id) if waiting and not workspace.is_deleted else ():
        with in_language_of(approver):
            _queue(workspace, approver, waiting)


def _queue(workspace: Workspace, approver: User, waiting: Sequence[Email]) -> None:
    name = " ".join(workspace.name.split())
    emails = "\n\n".join(f"{_describe(email)}\n\n{approval_url(email, approver)}" for email in waiting)
    url = f"{settings.PUBLIC_URL}{reverse('dashboard:emails_email_changelist')}?held=approval"
    text = str(REQUEST).format(workspace=name, emails=emails, url=url)
    subject = gettext("Emails of %(workspace)s wait for your approval") % {"workspace": name}
    queue_system_mail(to=approver.email, kind=SystemMailKind.APPROVAL, subject=subject, text=text)


def approval_url(email: Email, approver: User) -> str:
    """Return the link by which an approver reads an email and decides about it."""
    return link("approval", token=approval_token(email, approver))


def _describe(email: Email) -> str:
    """Return the subject and the recipients, in quotation marks: a subject that is a URL does not become a button."""
    subject, to = (" ".join(text.split())[:MAX_SHOWN] for text in (email.subject, email.addressees))
    return gettext("“%(subject)s” to %(to)s") % {"subject": subject, "to": to}
