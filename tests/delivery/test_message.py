"""What a parser reads back is what was given; nothing given can add a header or a recipient."""

import email
import re
from datetime import UTC, datetime
from email import policy
from email.header import decode_header, make_header

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from api.addresses import FORBIDDEN, Address, InvalidAddress, parse_address
from delivery.errors import UnsafeHeader
from delivery.message import Letter, Mailbox, compose
from tests.corpus import emails

HEADERS = ["From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted", "MIME-Version", "Content-Type"]


def letter(**fields) -> Letter:
    values = {
        "message_id": "<id@alice.example>",
        "date": datetime(2026, 11, 21, 6, 20, tzinfo=UTC),
        "sender": Mailbox("Alice", "hi@alice.example"),
        "to": (Mailbox("", "ada@example.com"),),
        "cc": (),
        "reply_to": None,
        "subject": "Hello",
        "html": "<p>Hi</p>",
        "text": "",
        **fields,
    }
    return Letter(**values)


def parsed(source: bytes):
    return email.message_from_bytes(source, policy=policy.default)


# What requests let through to a header: no control characters, no separators, no surrogates.
HEADER_TEXT = st.text(max_size=300).filter(lambda text: not FORBIDDEN.search(text))


def test_a_message_has_its_headers_once_and_in_order():
    assert parsed(compose(letter())).keys() == HEADERS


def test_the_date_is_the_letters_own():
    assert parsed(compose(letter()))["Date"] == "Sat, 21 Nov 2026 06:20:00 +0000"


def test_a_letter_makes_the_same_bytes_every_time():
    assert compose(letter()) == compose(letter())


@given(HEADER_TEXT)
def test_a_subject_is_read_back_as_it_was_given(subject):
    message = parsed(compose(letter(subject=subject)))
    assert message["Subject"] == subject
    assert message.keys() == HEADERS


def display_name(source: bytes) -> str:
    """Read the sender's name by RFC 2047 alone: the newer parser puts blanks between encoded words of a name."""
    phrase = email.message_from_bytes(source)["From"].rpartition("<")[0].strip()
    if phrase.startswith('"'):
        return re.sub(r"\\(.)", r"\1", phrase[1:-1])
    return str(make_header(decode_header(phrase)))


@given(HEADER_TEXT)
def test_a_name_is_read_back_as_it_was_given(name):
    assume(name.strip() == name)
    sender, to = Mailbox(name, "hi@alice.example"), Mailbox(name, "ada@example.com")
    source = compose(letter(sender=sender, to=(to,) * 3))
    message = parsed(source)
    (sender,) = message["From"].addresses
    assert sender.addr_spec == "hi@alice.example"
    assert display_name(source) == name
    assert [address.addr_spec for address in message["To"].addresses] == ["ada@example.com"] * 3
    assert message.keys() == HEADERS


@given(
    st.text(max_size=60), st.sampled_from(["\r", "\n", "\r\n", "\0", "\x0b", "\x85", "\u2028"]), st.text(max_size=60)
)
def test_what_could_end_a_line_never_reaches_the_wire(before, end, after):
    for fields in ({"subject": before + end + after}, {"sender": Mailbox(before + end + after, "a@b.co")}):
        with pytest.raises(UnsafeHeader):
            compose(letter(**fields))


@pytest.mark.parametrize(
    "subject", ["=?utf-8?q?=0d=0aBcc:_eve@example.com?=", "a =?utf-8?b?SGk=?= b", "=?", "  two  spaces ", "x" * 998]
)
def test_a_subject_that_looks_encoded_or_would_not_fold_is_read_back_too(subject):
    assert parsed(compose(letter(subject=subject)))["Subject"] == subject


@given(HEADER_TEXT, HEADER_TEXT)
def test_lines_stay_within_their_limits(subject, name):
    source = compose(letter(subject=subject, to=(Mailbox(name.strip(), "ada@example.com"),)))
    assert source.isascii()
    for line in source.split(b"\r\n"):
        assert len(line) <= 78
        assert b"\r" not in line
        assert b"\n" not in line


@given(st.text(alphabet=st.sampled_from("ab.\r\n \t=-é😀"), max_size=200), st.text(max_size=200))
def test_bodies_arrive_as_they_were_given(html, text):
    html = "".join(character for character in html + text if not "\ud800" <= character <= "\udfff") + "<p>"
    message = parsed(compose(letter(html=html, text="T")))
    plain, rich = message.iter_parts()
    assert rich.get_payload(decode=True).decode() == html
    assert plain.get_content() == "T"


def test_text_alone_is_one_part():
    message = parsed(compose(letter(html="", text="Hello\n")))
    assert (message.get_content_type(), message.get_content()) == ("text/plain", "Hello\n")


def test_html_alone_gets_a_text_part_with_its_words_and_links():
    html = (
        "<html><head><style>p{}</style><title>T</title></head><body><p>Hello <b>Ada</b></p>"
        "<ul><li>one<li>two</ul><a href='https://x.example/a?b=1&amp;c=2'>Open</a></body></html>"
    )
    plain, _ = parsed(compose(letter(html=html))).iter_parts()
    text = plain.get_content()
    assert "Hello Ada\n" in text
    assert re.search(r"one\n+two", text)
    assert "Open (https://x.example/a?b=1&c=2)" in text
    assert "p{}" not in text


@pytest.mark.parametrize("real", emails(), ids=lambda real: real.name)
def test_real_emails_have_text_and_no_tags_in_it(real):
    plain, _ = parsed(compose(letter(html=real.html, subject=real.subject))).iter_parts()
    text = plain.get_content()
    assert len(text.split()) > 5
    assert "<td" not in text
    assert "mso" not in text


@given(st.text(max_size=100))
def test_reading_an_address_raises_nothing_but_its_own_error(text):
    try:
        address = parse_address(text)
    except InvalidAddress:
        return
    assert parse_address(str(address)) == address


@given(HEADER_TEXT.map(str.strip))
def test_a_name_survives_being_written_and_read(name):
    import unicodedata

    address = Address(unicodedata.normalize("NFC", name), "a@b.co")
    assert parse_address(str(address)) == address
