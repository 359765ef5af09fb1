"""The account of a person whom the provider signed in: found, linked, or created (docs/decisions/0201)."""

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now
from django.utils.functional import Promise
from django.utils.translation import get_language, gettext_lazy

from console.dashboard.auth.account_emails import send_security_notice
from console.dashboard.auth.oidc.claims import Person
from console.dashboard.auth.passwords import has_password
from console.dashboard.auth.signin import is_invited
from core.workspaces.access_rules import ClaimedAccess, Grants
from core.workspaces.account_status import is_unconfirmed
from core.workspaces.deletion import existing_workspaces
from core.workspaces.identities import (
    ClaimsNotSent,
    IdentityTaken,
    apply_grants,
    create_identity_account,
    link_identity,
)
from core.workspaces.models import Identity, User

LINKED = gettext_lazy("An account of the identity provider was linked to your account.")
NO_ACCESS = gettext_lazy("Your account at %(label)s has no access to this page.")
CLAIMS_NOT_SENT = gettext_lazy("%(label)s did not send the claims that your access depends on.")
NO_ADDRESS = gettext_lazy("%(label)s did not send an email address for your account.")
ACCOUNT_EXISTS = gettext_lazy(
    "An account with your email address exists already: sign in to it in another way, and link it under Security."
)
ADDRESS_LINKED = gettext_lazy("Another account at %(label)s is linked to your email address already.")
ALREADY_LINKED = gettext_lazy("This account is linked to another account at %(label)s already.")


class SignInDenied(Exception):
    """Raised for a person without access.

    text: the text of a page, with the placeholder label.
    who: the name in the audit log.
    """

    def __init__(self, text: Promise, *, who: object) -> None:
        super().__init__(str(text))
        self.text, self.who = text, who


class LinkNeeded(Exception):
    """Raised if an account with the address of the person exists, and its password proves that it is theirs."""

    def __init__(self, user: User) -> None:
        super().__init__(user.email)
        self.user = user


def account_for_site(person: Person, grants: Grants, *, site: str) -> User:
    """Return the account of a person with access to a site, with the roles of the claims.

    Raises SignInDenied, LinkNeeded.
    """
    user = _find_account(person, grants)
    try:
        apply_grants(user, grants)
    except ClaimsNotSent as error:
        raise SignInDenied(CLAIMS_NOT_SENT, who=f"{user.email} ({error})") from error
    user.refresh_from_db()
    if not (user.is_staff if site == "admin" else user.memberships.exists() or is_invited(user.email)):
        raise SignInDenied(NO_ACCESS, who=user.email)
    Identity.objects.filter(issuer=person.issuer, subject=person.subject).update(last_sign_in_at=Now())
    return user


@transaction.atomic
def link_to_account(user: User, *, issuer: str, subject: str) -> None:
    """Link an identity, and tell the owner of the account. Raises IdentityTaken."""
    link_identity(user, issuer=issuer, subject=subject)
    send_security_notice(user, change=LINKED)


def _find_account(person: Person, grants: Grants) -> User:
    identity = Identity.objects.select_related("user").filter(issuer=person.issuer, subject=person.subject).first()
    existing = User.objects.filter(email=person.email).first() if person.email else None
    try:
        if identity:
            user = identity.user
        elif existing:
            user = _link_existing(existing, person)
        else:
            user = _create_account(person, grants)
    except IdentityTaken as error:
        raise SignInDenied(ADDRESS_LINKED, who=person) from error
    if not user.is_active:
        raise SignInDenied(NO_ACCESS, who=user.email)
    return user


def _link_existing(user: User, person: Person) -> User:
    """Return the account with the address of the person, if that proves that both belong together."""
    if user.identities.filter(issuer=person.issuer).exists():
        raise IdentityTaken
    is_same_address = person.has_verified_email and not is_unconfirmed(user)
    if is_same_address and settings.OIDC_TRUST_EMAIL:
        link_to_account(user, issuer=person.issuer, subject=person.subject)
        return user
    if is_same_address and has_password(user):
        raise LinkNeeded(user)
    raise SignInDenied(ACCOUNT_EXISTS, who=person)


def _create_account(person: Person, grants: Grants) -> User:
    is_expected = _exists(grants.access) or (person.has_verified_email and is_invited(person.email))
    if settings.OIDC_CREATE == "none" or not is_expected:
        raise SignInDenied(NO_ACCESS, who=person)
    if not person.email:
        raise SignInDenied(NO_ADDRESS, who=person)
    return create_identity_account(
        email=person.email, issuer=person.issuer, subject=person.subject, language=get_language() or ""
    )


def _exists(access: ClaimedAccess) -> bool:
    return access.is_staff or existing_workspaces().filter(id__in=access.roles).exists()
