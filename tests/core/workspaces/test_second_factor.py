import time

import pytest

from core.workspaces import second_factor
from core.workspaces.models import RecoveryCode, SecondFactor
from core.workspaces.second_factor import (
    begin_enrolment,
    check_any_code,
    check_code,
    code_at,
    confirm_enrolment,
    end_second_factor,
    format_secret,
    otpauth_url,
)
from tests.rows import each

pytestmark = pytest.mark.django_db


@pytest.fixture
def step(monkeypatch):
    """Freeze the clock in the middle of the current 30 s step; return the step."""
    now = int(time.time()) // 30
    monkeypatch.setattr(second_factor.time, "time", lambda: now * 30 + 15)
    return now


@pytest.fixture
def secret(alice, step):
    return begin_enrolment(alice.owner)


def test_codes_match_the_rfc_6238_test_vectors():
    # Appendix B, the last six of its eight digits.
    secret = b"12345678901234567890"

    found = {seconds: code_at(secret, step=seconds // 30) for seconds in (59, 1111111109, 2000000000)}

    assert found == {59: "287082", 1111111109: "081804", 2000000000: "279037"}


def test_a_code_turns_it_on_and_recovery_codes_come_with_it(alice, secret, step):
    codes = confirm_enrolment(alice.owner, code=code_at(secret, step=step))

    assert len(set(codes)) == 10
    alice.owner.refresh_from_db()
    assert alice.owner.second_factor_at


def test_a_wrong_code_turns_nothing_on(alice, secret, step):
    wrong = f"{(int(code_at(secret, step=step)) + 1) % 1_000_000:06}"

    assert confirm_enrolment(alice.owner, code=wrong) is None
    alice.owner.refresh_from_db()
    assert alice.owner.second_factor_at is None


@each(("off", "is_accepted"), [(-2, False), (-1, True), (0, True), (1, True), (2, False)])
def test_a_clock_may_be_one_step_off(alice, secret, step, off, is_accepted):
    assert check_code(alice.owner, code=code_at(secret, step=step + off)) is is_accepted


def test_neither_a_used_code_nor_an_older_one_is_accepted(alice, secret, step):
    assert check_code(alice.owner, code=code_at(secret, step=step))

    assert not check_code(alice.owner, code=code_at(secret, step=step))
    assert not check_code(alice.owner, code=code_at(secret, step=step - 1))
    assert check_code(alice.owner, code=code_at(secret, step=step + 1))


@each("code", ["", "12345", "1234567", "abcdef", "\uff11\uff12\uff13\uff14\uff15\uff16", "12 34 5", "\0" * 6])
def test_an_invalid_code_is_refused(alice, secret, code):
    assert not check_any_code(alice.owner, code=code)


def test_a_recovery_code_works_once_in_any_spelling(alice, secret, step):
    first, second, *_ = confirm_enrolment(alice.owner, code=code_at(secret, step=step))

    assert check_any_code(alice.owner, code=first)
    assert not check_any_code(alice.owner, code=first)
    assert check_any_code(alice.owner, code=second.upper().replace("-", " "))
    assert RecoveryCode.objects.count() == 8


def test_codes_of_another_account_are_refused(alice, bob, secret, step):
    begin_enrolment(bob.owner)
    codes = confirm_enrolment(alice.owner, code=code_at(secret, step=step))

    assert not check_any_code(bob.owner, code=codes[0])
    assert not check_any_code(bob.owner, code=code_at(secret, step=step + 1))


def test_secrets_and_codes_are_not_stored_in_plain_text(alice, secret, step):
    codes = confirm_enrolment(alice.owner, code=code_at(secret, step=step))

    stored = SecondFactor.objects.get().sealed_secret + "".join(
        RecoveryCode.objects.values_list("code_hash", flat=True)
    )
    for plain in (format_secret(secret).replace(" ", ""), *codes, *(code.replace("-", "") for code in codes)):
        assert plain not in stored


def test_a_secret_copied_to_another_account_cannot_be_decrypted(alice, bob, secret):
    from cryptography.exceptions import InvalidTag

    SecondFactor.objects.create(user=bob.owner, sealed_secret=SecondFactor.objects.get().sealed_secret)

    with pytest.raises(InvalidTag):
        begin_enrolment(bob.owner)


def test_reloading_the_page_keeps_the_secret(alice, secret):
    assert begin_enrolment(alice.owner) == secret


def test_the_otpauth_url_has_secret_and_issuer(alice, secret):
    bare = format_secret(secret).replace(" ", "")

    url = otpauth_url(alice.owner, secret=secret)

    assert url == f"otpauth://totp/Postrider%3Aalice%40alice.example?secret={bare}&issuer=Postrider"


def test_turning_it_off_deletes_the_secret_and_codes(alice, secret, step):
    confirm_enrolment(alice.owner, code=code_at(secret, step=step))

    end_second_factor(alice.owner)

    assert not SecondFactor.objects.exists()
    assert not RecoveryCode.objects.exists()
    assert begin_enrolment(alice.owner) != secret
