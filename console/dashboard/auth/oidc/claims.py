"""The verified claims of a person: identity, address, second factor, and what the rules of the roles file compare."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.core.validators import validate_email

from console.dashboard.auth.oidc.errors import ProviderRefused
from core.workspaces.access_rules import EMAIL_DOMAIN, RoleRule
from core.workspaces.models import MAX_IDENTITY_LENGTH, normalize_identity

if TYPE_CHECKING:
    from console.dashboard.auth.oidc.provider import Provider

ADDRESS_CLAIMS = frozenset({"email", "email_verified"})
MULTIPLE_FACTORS = "mfa"
MAX_SUBJECT_LENGTH = 255


@dataclass(frozen=True)
class Person:
    """The person that the provider signed in.

    email: normalized; empty if the provider sent none.
    has_verified_email: whether the provider sent the value true.
    """

    issuer: str
    subject: str
    email: str
    has_verified_email: bool
    has_mfa: bool
    claims: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.email or self.subject}"


def read_person(provider: "Provider", token: dict[str, Any], *, rules: Iterable[RoleRule]) -> Person:
    """Return the person of a verified token. Claims that the ID token lacks are read from the userinfo endpoint.

    Raises ProviderUnavailable, ProviderRefused.
    """
    claims = dict(token["userinfo"])
    if not {*ADDRESS_CLAIMS, *(rule.claim for rule in rules)} - {EMAIL_DOMAIN} <= claims.keys():
        claims = _merge(claims, provider.read_userinfo(token))
    subject = claims["sub"]
    if not 0 < len(subject) <= MAX_SUBJECT_LENGTH:
        raise ProviderRefused("the subject has more than 255 characters")
    email = _read_address(claims.get("email"))
    has_verified_email = bool(email) and claims.get("email_verified") is True
    # A claim of this name would let a person choose a domain.
    claims.pop(EMAIL_DOMAIN, None)
    if has_verified_email:
        claims[EMAIL_DOMAIN] = email.rpartition("@")[2]
    return Person(provider.issuer, subject, email, has_verified_email, _has_mfa(claims), claims)


def _merge(claims: Mapping[str, Any], userinfo: Mapping[str, Any]) -> dict[str, Any]:
    """Return the claims of both. The address and its verification are of the same document."""
    if "email" in userinfo:
        claims = {name: value for name, value in claims.items() if name not in ADDRESS_CLAIMS}
    else:
        userinfo = {name: value for name, value in userinfo.items() if name not in ADDRESS_CLAIMS}
    return {**userinfo, **claims}


def _read_address(value: object) -> str:
    """Return a normalized address, and an empty text for anything else."""
    if not isinstance(value, str) or len(value) > MAX_IDENTITY_LENGTH:
        return ""
    address = normalize_identity(value)
    try:
        validate_email(address)
    except ValidationError:
        return ""
    return address


def _has_mfa(claims: Mapping[str, Any]) -> bool:
    """Return whether the provider reports several factors (RFC 8176), in amr or as a word of acr."""
    methods, context = claims.get("amr"), claims.get("acr")
    words = re.split(r"[^a-z0-9]+", context.lower()) if isinstance(context, str) else []
    return MULTIPLE_FACTORS in words or (isinstance(methods, list) and MULTIPLE_FACTORS in methods)
