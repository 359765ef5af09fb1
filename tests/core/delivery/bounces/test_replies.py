from hypothesis import given
from hypothesis import strategies as st

from core.delivery.bounces.replies import Reply, safe_text
from tests.rows import each


@each(("text", "code"), [
    ("5.1.1 no such user", "5.1.1"), ("4.7.1", "4.7.1"), ("2.0.0 ok", "2.0.0"), ("no such user 5.1.1", None),
    ("5.1.1.2 x", None), ("3.1.1 x", None), ("", None),
])  # fmt: skip
def test_an_enhanced_code_is_read_at_the_start(text, code):
    assert Reply(550, text).enhanced_code == code


@given(st.text())
def test_a_hostile_reply_can_be_stored_and_shown(raw):
    text = safe_text(raw)
    text.encode("utf-8")
    assert len(text) <= 4000
    assert not any(character in text for character in "\0\x1b\r\x07")
