"""What the service itself writes to people. Every link begins with PUBLIC_URL, never with a request's Host."""

from urllib.parse import urlencode

from django.conf import settings
from django.contrib.auth.tokens import default_token_generator
from django.urls import reverse
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from system_mail.services import Kind, pretend_to_queue, queue_mail
from workspaces.account_status import proof_token
from workspaces.members import invitation_token
from workspaces.models import Invitation, User

INVITATION = _("""{by} invites you to the workspace "{workspace}" on Postrider, a service that sends email for
programs. To join it as {role}, open this link within seven days:

{url}

If you do not know what this is about, do nothing: without the link nothing happens.
""")
PROOF = _("""Somebody, most likely you, made an account with this address on Postrider. To confirm that the address is
yours, open this link within seven days:

{url}

Until then no API key of the account works. If it was not you, do nothing.
""")
RESET = _("""Somebody, most likely you, asked for a new password for your Postrider account. To choose one, open this
link within an hour:

{url}

It works once. If it was not you, do nothing: your password stays as it is.
""")
NOTICE = _("""{what}

If that was you, there is nothing to do. If it was not, choose a new password now:

{url}
""")


def send_invitation(invitation: Invitation) -> None:
    workspace = _one_line(invitation.workspace.name)
    text = str(INVITATION).format(
        by=invitation.invited_by or gettext("Somebody"),
        workspace=workspace,
        role=gettext("an owner") if invitation.role == "owner" else gettext("a member"),
        url=link("invitation", token=invitation_token(invitation)),
    )
    subject = gettext("Join %(workspace)s on Postrider") % {"workspace": workspace}
    queue_mail(to=invitation.email, kind=Kind.INVITATION, subject=subject, text=text)


def send_proof(user: User) -> None:
    text = str(PROOF).format(url=link("proof", token=proof_token(user)))
    queue_mail(to=user.email, kind=Kind.PROOF, subject=gettext("Confirm your address for Postrider"), text=text)


def send_reset(email: str) -> None:
    """Send a link for a new password; an address without an account costs as much, and gets nothing."""
    user = User.objects.filter(email=email, is_active=True).first()
    send = queue_mail if user else pretend_to_queue
    account = user or User(pk=0, email=email, password="")
    token = default_token_generator.make_token(account)
    url = link("new_password", account=urlsafe_base64_encode(force_bytes(account.pk)), token=token)
    send(to=email, kind=Kind.RESET, subject=gettext("A new password for Postrider"), text=str(RESET).format(url=url))


def send_notice(user: User, *, what: str) -> None:
    text = str(NOTICE).format(what=what, url=link("reset"))
    queue_mail(to=user.email, kind=Kind.NOTICE, subject=gettext("Your Postrider account was changed"), text=text)


def link(name: str, **query: str) -> str:
    url = f"{settings.PUBLIC_URL}{reverse(f'dashboard:{name}')}"
    return f"{url}?{urlencode(query)}" if query else url


def _one_line(text: str) -> str:
    return " ".join(text.split())
