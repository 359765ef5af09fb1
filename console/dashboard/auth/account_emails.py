"""Account emails: invitations, confirmations, resets and notices. Links use PUBLIC_URL, never the Host header."""

from django.conf import settings
from django.contrib.auth.tokens import default_token_generator
from django.utils.encoding import force_bytes
from django.utils.functional import Promise
from django.utils.http import urlsafe_base64_encode
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from console.dashboard.auth.passwords import has_password
from console.system_mail.invitations import link
from console.system_mail.models import SystemMailKind
from console.system_mail.services import in_language_of, pretend_to_queue, queue_system_mail
from core.workspaces.account_status import confirmation_token
from core.workspaces.models import User

CONFIRMATION = _("""Thanks for signing up for {service}. To confirm your email address, open this link within seven
days and sign in:

{url}

Your API keys start working once the address is confirmed. If you did not create this account, open the link and delete
the account; you do not have to sign in for that.
""")
RESET = _("""We received a request to reset the password of your {service} account. To choose a new password, open
this link within an hour:

{url}

The link works once. If you did not request this, you can ignore this email: your password will not change.
""")
NOTICE = _("""{change}

If this was you, no action is needed. If it was not, reset your password now:

{url}
""")
NOTICE_WITHOUT_PASSWORD = _("""{change}

If this was you, no action is needed. If it was not, tell the operator of this service now:

{url}
""")


def send_confirmation(user: User) -> None:
    url = link("confirm_email", token=confirmation_token(user))
    with in_language_of(user):
        queue_system_mail(
            to=user.email,
            kind=SystemMailKind.PROOF,
            subject=gettext("Confirm your email address"),
            text=str(CONFIRMATION).format(service=settings.SYSTEM_NAME, url=url),
        )


def send_password_reset(email: str) -> None:
    """Send a password reset link. An address without a password costs the same work and receives nothing."""
    user = User.objects.filter(email=email, is_active=True).first()
    if user and not has_password(user):
        user = None
    send = queue_system_mail if user else pretend_to_queue
    account = user or User(pk=0, email=email, password="")
    token = default_token_generator.make_token(account)
    url = link("new_password", account=urlsafe_base64_encode(force_bytes(account.pk)), token=token)
    with in_language_of(user):
        send(
            to=email,
            kind=SystemMailKind.RESET,
            subject=gettext("Reset your %(service)s password") % {"service": settings.SYSTEM_NAME},
            text=str(RESET).format(service=settings.SYSTEM_NAME, url=url),
        )


def send_security_notice(user: User, *, change: Promise) -> None:
    with in_language_of(user):
        text = str(NOTICE if has_password(user) else NOTICE_WITHOUT_PASSWORD)
        queue_system_mail(
            to=user.email,
            kind=SystemMailKind.NOTICE,
            subject=gettext("Your %(service)s account was changed") % {"service": settings.SYSTEM_NAME},
            text=text.format(change=change, url=link("reset" if has_password(user) else "index")),
        )
