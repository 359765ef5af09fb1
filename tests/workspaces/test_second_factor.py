import time

import pytest

from workspaces import second_factor
from workspaces.models import RecoveryCode, SecondFactor
from workspaces.second_factor import (
    begin_enrolment,
    check_any_code,
    check_code,
    code_at,
    confirm_enrolment,
    end_second_factor,
    otpauth_url,
    spelled,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def step(monkeypatch):
    """The clock stands in the middle of this 30 s step."""
    now = int(time.time()) // 30
    monkeypatch.setattr(second_factor.time, "time", lambda: now * 30 + 15)
    return now


@pytest.fixture
def secret(alice, step):
    return begin_enrolment(alice.owner)


def test_codes_are_those_of_rfc_6238():
    # Appendix B, the last six of its eight digits.
    secret = b"12345678901234567890"

    found = {moment: code_at(secret, step=moment // 30) for moment in (59, 1111111109, 2000000000)}

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


@pytest.mark.parametrize(("off", "is_taken"), [(-2, False), (-1, True), (0, True), (1, True), (2, False)])
def test_a_clock_may_be_one_step_off(alice, secret, step, off, is_taken):
    assert check_code(alice.owner, code=code_at(secret, step=step + off)) is is_taken


def test_no_code_is_taken_twice_nor_one_before_it(alice, secret, step):
    assert check_code(alice.owner, code=code_at(secret, step=step))

    assert not check_code(alice.owner, code=code_at(secret, step=step))
    assert not check_code(alice.owner, code=code_at(secret, step=step - 1))
    assert check_code(alice.owner, code=code_at(secret, step=step + 1))


@pytest.mark.parametrize(
    "code", ["", "12345", "1234567", "abcdef", "\uff11\uff12\uff13\uff14\uff15\uff16", "12 34 5", "\0" * 6]
)
def test_what_is_no_code_is_refused(alice, secret, code):
    assert not check_any_code(alice.owner, code=code)


def test_a_recovery_code_works_once_however_it_is_typed(alice, secret, step):
    first, second, *_ = confirm_enrolment(alice.owner, code=code_at(secret, step=step))

    assert check_any_code(alice.owner, code=first)
    assert not check_any_code(alice.owner, code=first)
    assert check_any_code(alice.owner, code=second.upper().replace("-", " "))
    assert RecoveryCode.objects.count() == 8


def test_another_accounts_codes_are_worth_nothing(alice, bob, secret, step):
    begin_enrolment(bob.owner)
    codes = confirm_enrolment(alice.owner, code=code_at(secret, step=step))

    assert not check_any_code(bob.owner, code=codes[0])
    assert not check_any_code(bob.owner, code=code_at(secret, step=step + 1))


def test_nothing_is_stored_as_it_is(alice, secret, step):
    codes = confirm_enrolment(alice.owner, code=code_at(secret, step=step))

    stored = SecondFactor.objects.get().sealed_secret + "".join(
        RecoveryCode.objects.values_list("code_hash", flat=True)
    )
    for plain in (spelled(secret).replace(" ", ""), *codes, *(code.replace("-", "") for code in codes)):
        assert plain not in stored


def test_a_secret_moved_to_another_account_does_not_open(alice, bob, secret):
    from cryptography.exceptions import InvalidTag

    SecondFactor.objects.create(user=bob.owner, sealed_secret=SecondFactor.objects.get().sealed_secret)

    with pytest.raises(InvalidTag):
        begin_enrolment(bob.owner)


def test_loading_the_page_again_keeps_the_secret(alice, secret):
    assert begin_enrolment(alice.owner) == secret


def test_apps_read_its_url(alice, secret):
    bare = spelled(secret).replace(" ", "")

    url = otpauth_url(alice.owner, secret=secret)

    assert url == f"otpauth://totp/Postrider%3Aalice%40alice.example?secret={bare}&issuer=Postrider"


def test_turning_it_off_forgets_everything(alice, secret, step):
    confirm_enrolment(alice.owner, code=code_at(secret, step=step))

    end_second_factor(alice.owner)

    assert not SecondFactor.objects.exists()
    assert not RecoveryCode.objects.exists()
    assert begin_enrolment(alice.owner) != secret
