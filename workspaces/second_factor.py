"""Codes from a phone as a second factor (RFC 6238: SHA-1, 6 digits, 30 seconds), and codes for a lost phone.

See docs/decisions/0056.
"""

import base64
import hashlib
import hmac
import secrets
import time
from urllib.parse import quote, urlencode

from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP
from django.db import transaction
from django.utils import timezone

from lib.keyring import UnknownKey, key_named, newest_key
from lib.sealed import seal, unseal
from workspaces.models import RecoveryCode, SecondFactor, User

SEAL_PURPOSE = "second-factor"
HASH_PURPOSE = "recovery-code"
ISSUER = "Postrider"
SECRET_BYTES = 20
STEP_SECONDS = 30
DIGITS = 6
# A phone's clock may be a step off, either way.
WINDOW = (-1, 0, 1)
RECOVERY_CODES = 10
RECOVERY_BYTES = 10


def begin_enrolment(user: User) -> bytes:
    """Return the secret for a phone: a new one, or the one that enrolment began with.

    It is not in force before `confirm_enrolment`. Loading the page again must not void what a phone has just read.
    """
    factor = SecondFactor.objects.filter(user=user).first()
    if factor is None:
        sealed = seal(secrets.token_bytes(SECRET_BYTES), purpose=SEAL_PURPOSE, row=_row(user))
        factor, _ = SecondFactor.objects.get_or_create(user=user, defaults={"sealed_secret": sealed})
    return _secret(factor)


@transaction.atomic
def confirm_enrolment(user: User, *, code: str) -> list[str] | None:
    """Put the factor in force; return the recovery codes, to be shown once. None for a wrong code.

    The account's other sessions end.
    """
    if user.second_factor_at or not check_code(user, code=code):
        return None
    user.second_factor_at = timezone.now().replace(microsecond=0)
    user.save(update_fields=["second_factor_at"])
    return _new_recovery_codes(user)


@transaction.atomic
def end_second_factor(user: User) -> None:
    """Let the password do alone from now on; the account's other sessions end."""
    SecondFactor.objects.filter(user=user).delete()
    RecoveryCode.objects.filter(user=user).delete()
    user.second_factor_at = None
    user.save(update_fields=["second_factor_at"])


def check_any_code(user: User, *, code: str) -> bool:
    """Take a code of the phone, or one of the recovery codes; either works once."""
    return check_code(user, code=code) or _use_recovery_code(user, code=code)


def check_code(user: User, *, code: str) -> bool:
    """Take a code of the phone: one step before or after now at most, and none twice."""
    digits = "".join(code.split())
    factor = SecondFactor.objects.filter(user=user).first()
    if factor is None or len(digits) != DIGITS or not digits.isascii():
        return False
    step = _step_of(digits, secret=_secret(factor))
    # One statement decides between two who show the same code at once.
    unused = SecondFactor.objects.filter(user=user, last_step__lt=step or 0)
    return step is not None and bool(unused.update(last_step=step))


def otpauth_url(user: User, *, secret: bytes) -> str:
    """Return the URL that authenticator apps read."""
    query = urlencode({"secret": spelled(secret).replace(" ", ""), "issuer": ISSUER})
    return f"otpauth://totp/{quote(f'{ISSUER}:{user.email}')}?{query}"


def spelled(secret: bytes) -> str:
    """Write a secret in base 32, in groups of four, to be typed."""
    text = base64.b32encode(secret).decode()
    return " ".join(text[at : at + 4] for at in range(0, len(text), 4))


def code_at(secret: bytes, *, step: int) -> str:
    return TOTP(secret, DIGITS, SHA1(), STEP_SECONDS).generate(step * STEP_SECONDS).decode()  # noqa: S303 - RFC 6238's own


def _step_of(digits: str, *, secret: bytes) -> int | None:
    now = int(time.time()) // STEP_SECONDS
    # All are compared, so that the time tells nothing.
    found = [now + off for off in WINDOW if hmac.compare_digest(code_at(secret, step=now + off), digits)]
    return found[0] if found else None


def _new_recovery_codes(user: User) -> list[str]:
    codes = [base64.b32encode(secrets.token_bytes(RECOVERY_BYTES)).decode().lower() for _ in range(RECOVERY_CODES)]
    RecoveryCode.objects.filter(user=user).delete()
    RecoveryCode.objects.bulk_create(
        [RecoveryCode(user=user, code_hash=_hashed(code, pepper_id=newest_key(HASH_PURPOSE).id)) for code in codes]
    )
    return ["-".join(code[at : at + 4] for at in range(0, len(code), 4)) for code in codes]


def _use_recovery_code(user: User, *, code: str) -> bool:
    text = code.replace("-", "").replace(" ", "").lower()
    matching = [known.pk for known in user.recovery_codes.all() if _matches(text, known.code_hash)]
    deleted, _ = RecoveryCode.objects.filter(pk__in=matching).delete()
    return bool(deleted)


def _matches(text: str, code_hash: str) -> bool:
    try:
        return hmac.compare_digest(_hashed(text, pepper_id=code_hash.partition(":")[0]), code_hash)
    except UnknownKey:
        return False


def _hashed(text: str, *, pepper_id: str) -> str:
    pepper = key_named(pepper_id, HASH_PURPOSE)
    return f"{pepper.id}:{hmac.new(pepper.secret, text.encode(), hashlib.sha256).hexdigest()}"


def _secret(factor: SecondFactor) -> bytes:
    return unseal(factor.sealed_secret, purpose=SEAL_PURPOSE, row=str(factor.pk))


def _row(user: User) -> str:
    return str(user.pk)
