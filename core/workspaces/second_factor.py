"""Two-factor authentication: TOTP codes (RFC 6238: SHA-1, 6 digits, 30 seconds) and recovery codes.

See docs/decisions/0056.
"""

import base64
import hmac
import secrets
import time
from urllib.parse import quote, urlencode

from cryptography.hazmat.primitives.hashes import SHA1
from cryptography.hazmat.primitives.twofactor.totp import TOTP
from django.db import transaction
from django.utils import timezone

from core.lib.sealed import seal, unseal
from core.workspaces.api_key_secrets import hash_secret, secret_matches
from core.workspaces.models import RecoveryCode, SecondFactor, User

SEAL_PURPOSE = "second-factor"
HASH_PURPOSE = "recovery-code"
ISSUER = "Postrider"
SECRET_BYTES = 20
STEP_SECONDS = 30
DIGITS = 6
# Accepts codes of a clock that is one step ahead or behind.
WINDOW = (-1, 0, 1)
RECOVERY_CODES = 10
RECOVERY_BYTES = 10


def begin_enrolment(user: User) -> bytes:
    """Return the TOTP secret for enrolment: a new one, or that of an enrolment in progress.

    It is inactive until `confirm_enrolment`. Reloading the page must not invalidate a secret that was just scanned.
    """
    factor = SecondFactor.objects.filter(user=user).first()
    if factor is None:
        sealed = seal(secrets.token_bytes(SECRET_BYTES), purpose=SEAL_PURPOSE, row=str(user.pk))
        factor, _ = SecondFactor.objects.get_or_create(user=user, defaults={"sealed_secret": sealed})
    return _secret(factor)


@transaction.atomic
def confirm_enrolment(user: User, *, code: str) -> list[str] | None:
    """Activate the second factor; return the recovery codes, to be shown once. None for a wrong code.

    Ends the other sessions of the account.
    """
    if user.second_factor_at or not check_code(user, code=code):
        return None
    user.second_factor_at = timezone.now().replace(microsecond=0)
    user.save(update_fields=["second_factor_at"])
    return _new_recovery_codes(user)


@transaction.atomic
def end_second_factor(user: User) -> None:
    """Turn off two-factor authentication. Ends the other sessions of the account."""
    SecondFactor.objects.filter(user=user).delete()
    RecoveryCode.objects.filter(user=user).delete()
    user.second_factor_at = None
    user.save(update_fields=["second_factor_at"])


def check_any_code(user: User, *, code: str) -> bool:
    """Return True for a valid TOTP code or recovery code, which is then used up."""
    return check_code(user, code=code) or _use_recovery_code(user, code=code)


def check_code(user: User, *, code: str) -> bool:
    """Return True for a valid TOTP code at most one step off. Each code, and any older one, is accepted once."""
    digits = "".join(code.split())
    factor = SecondFactor.objects.filter(user=user).first()
    if factor is None or len(digits) != DIGITS or not digits.isascii():
        return False
    step = _matching_step(digits, secret=_secret(factor))
    # A conditional update, so that only one of two concurrent requests can use a code.
    unused = SecondFactor.objects.filter(user=user, last_step__lt=step or 0)
    return step is not None and bool(unused.update(last_step=step))


def otpauth_url(user: User, *, secret: bytes) -> str:
    """Return the otpauth URL for authenticator apps."""
    query = urlencode({"secret": format_secret(secret).replace(" ", ""), "issuer": ISSUER})
    return f"otpauth://totp/{quote(f'{ISSUER}:{user.email}')}?{query}"


def format_secret(secret: bytes) -> str:
    """Return a secret in base 32, in groups of four characters for typing."""
    text = base64.b32encode(secret).decode()
    return " ".join(text[at : at + 4] for at in range(0, len(text), 4))


def code_at(secret: bytes, *, step: int) -> str:
    return TOTP(secret, DIGITS, SHA1(), STEP_SECONDS).generate(step * STEP_SECONDS).decode()  # noqa: S303 - RFC 6238's own


def _matching_step(digits: str, *, secret: bytes) -> int | None:
    now = int(time.time()) // STEP_SECONDS
    # Compares all candidates, to prevent a timing attack.
    steps = [now + off for off in WINDOW if hmac.compare_digest(code_at(secret, step=now + off), digits)]
    return steps[0] if steps else None


def _new_recovery_codes(user: User) -> list[str]:
    codes = [base64.b32encode(secrets.token_bytes(RECOVERY_BYTES)).decode().lower() for _ in range(RECOVERY_CODES)]
    RecoveryCode.objects.filter(user=user).delete()
    RecoveryCode.objects.bulk_create(
        [RecoveryCode(user=user, code_hash=hash_secret(code, purpose=HASH_PURPOSE)) for code in codes]
    )
    return ["-".join(code[at : at + 4] for at in range(0, len(code), 4)) for code in codes]


def _use_recovery_code(user: User, *, code: str) -> bool:
    text = code.replace("-", "").replace(" ", "").lower()
    known = user.recovery_codes.all()
    matching = [row.pk for row in known if secret_matches(text, row.code_hash, purpose=HASH_PURPOSE)]
    deleted, _ = RecoveryCode.objects.filter(pk__in=matching).delete()
    return bool(deleted)


def _secret(factor: SecondFactor) -> bytes:
    return unseal(factor.sealed_secret, purpose=SEAL_PURPOSE, row=str(factor.pk))
