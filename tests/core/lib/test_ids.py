"""Ids: randomness, order, round trips, and refusal of other texts."""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.lib.ids import InvalidId, from_uuid, new_id, to_uuid
from tests.rows import each


def test_an_id_has_96_random_bits_after_its_seconds():
    numbers = {to_uuid(new_id()).int for _ in range(1000)}
    assert len({number & ((1 << 96) - 1) for number in numbers}) == 1000


def test_ids_of_a_later_second_sort_later():
    early, late = uuid.UUID(int=5 << 96), uuid.UUID(int=6 << 96)
    assert from_uuid(early) < from_uuid(late)


@given(st.uuids())
def test_an_id_survives_a_round_trip(value):
    assert to_uuid(from_uuid(value, prefix="tpl_"), prefix="tpl_") == value


@given(st.text(max_size=30))
def test_any_other_text_is_refused(text):
    try:
        value = to_uuid(text, prefix="tpl_")
    except InvalidId:
        return
    assert from_uuid(value, prefix="tpl_") == text


@each("text", ["", "tpl_", "wh_" + "0" * 22, "tpl_" + "0" * 21, "tpl_" + "z" * 22, "tpl_" + "0" * 21 + "é"])
def test_a_text_without_the_prefix_or_length_is_refused(text):
    with pytest.raises(InvalidId):
        to_uuid(text, prefix="tpl_")
