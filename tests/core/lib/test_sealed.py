"""Sealed values: bound to row and purpose, readable after key rotation."""

import base64

import pytest
from cryptography.exceptions import InvalidTag

from core.lib import keyring
from core.lib.keyring import UnknownKey
from core.lib.sealed import seal, unseal

OLD, NEW = ("old", b"o" * 16 + bytes(range(16))), ("new", b"n" * 16 + bytes(range(16)))


@pytest.fixture
def use_key_ring(settings):
    def use(*entries):
        settings.APP_KEYS = list(entries)
        keyring._derived.cache_clear()

    use(OLD)
    yield use
    keyring._derived.cache_clear()


def test_a_sealed_value_is_decrypted_for_its_row_and_purpose(use_key_ring):
    sealed = seal(b"secret", purpose="p", row="row_1")
    assert b"secret" not in base64.b64decode(sealed.partition(".")[2])
    assert unseal(sealed, purpose="p", row="row_1") == b"secret"


@pytest.mark.parametrize(("purpose", "row"), [("p", "row_2"), ("q", "row_1")])
def test_a_sealed_value_is_invalid_for_another_row_or_purpose(use_key_ring, purpose, row):
    sealed = seal(b"secret", purpose="p", row="row_1")
    with pytest.raises(InvalidTag):
        unseal(sealed, purpose=purpose, row=row)


def test_one_flipped_bit_makes_it_invalid(use_key_ring):
    key_id, _, encoded = seal(b"secret", purpose="p", row="r").partition(".")
    data = bytearray(base64.b64decode(encoded))
    for position in range(len(data)):
        data[position] ^= 1
        with pytest.raises(InvalidTag):
            unseal(f"{key_id}.{base64.b64encode(data).decode()}", purpose="p", row="r")
        data[position] ^= 1


def test_an_older_key_decrypts_its_values_after_a_rotation(use_key_ring):
    sealed = seal(b"secret", purpose="p", row="r")
    use_key_ring(NEW, OLD)
    assert unseal(sealed, purpose="p", row="r") == b"secret"
    assert seal(b"x", purpose="p", row="r").startswith("new.")


def test_a_removed_key_is_named_in_the_error(use_key_ring):
    sealed = seal(b"secret", purpose="p", row="r")
    use_key_ring(NEW)
    with pytest.raises(UnknownKey, match="old"):
        unseal(sealed, purpose="p", row="r")
