"""Tokens of links and return paths: round trips, tampering and key rotation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.lib.tokens import InvalidToken, make_local_part, make_token, read_local_part, read_token

PAYLOADS = st.binary(min_size=1, max_size=300)


@given(payload=PAYLOADS)
def test_a_token_returns_its_payload_and_is_deterministic(payload: bytes) -> None:
    token = make_token(payload, purpose="click")
    assert read_token(token, purpose="click") == payload
    assert make_token(payload, purpose="click") == token


@given(payload=PAYLOADS, flip=st.integers(min_value=0))
def test_a_token_with_any_character_changed_is_invalid(payload: bytes, flip: int) -> None:
    token = make_token(payload, purpose="click")
    position = flip % len(token)
    other = token[:position] + ("A" if token[position] != "A" else "B") + token[position + 1 :]
    with pytest.raises(InvalidToken):
        read_token(other, purpose="click")


@given(text=st.text(max_size=100))
def test_arbitrary_text_is_not_a_token(text: str) -> None:
    for read in (read_token, read_local_part):
        with pytest.raises(InvalidToken):
            read(text, purpose="click")


def test_a_token_of_another_purpose_is_invalid() -> None:
    with pytest.raises(InvalidToken):
        read_token(make_token(b"payload", purpose="open"), purpose="click")


def test_a_local_part_fits_and_is_case_insensitive() -> None:
    token = make_local_part(b"0" * 16, purpose="return-path")
    assert len(token) <= 64
    assert token == token.lower()
    assert read_local_part(token.upper(), purpose="return-path") == b"0" * 16


def test_an_older_key_still_reads_and_the_newest_one_creates(settings) -> None:
    old = settings.APP_KEYS[0]
    token = make_token(b"payload", purpose="click")
    settings.APP_KEYS = [("newer", b"n" * 32), old]
    assert read_token(token, purpose="click") == b"payload"
    assert make_token(b"payload", purpose="click") != token
    settings.APP_KEYS = [("newer", b"n" * 32)]
    with pytest.raises(InvalidToken):
        read_token(token, purpose="click")
