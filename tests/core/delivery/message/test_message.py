"""Message composition: parsers read back the given values, and no value can add a header or a recipient."""

import email
import re
import time
from datetime import UTC, datetime
from email import policy
from email.header import decode_header, make_header

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from core.delivery.message.compose import File, OutgoingMessage, Placement, compose
from core.delivery.message.dkim import SigningKey
from core.delivery.message.errors import UnsafeHeader
from core.lib.email_addresses import FORBIDDEN, Address, InvalidAddress, parse_address
from tests.conftest import _private_key
from tests.corpus import emails
from tests.rows import each

HEADERS = [
    "From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted", "X-Auto-Response-Suppress", "MIME-Version",
    "Content-Type",
]  # fmt: skip


def outgoing_message(**fields) -> OutgoingMessage:
    values = {
        "return_path": "a@b.co",
        "recipient": "ada@example.com",
        "message_id": "<id@alice.example>",
        "date": datetime(2026, 11, 21, 6, 20, tzinfo=UTC),
        "sender": Address("Alice", "hi@alice.example"),
        "to": (Address("", "ada@example.com"),),
        "subject": "Hello",
        "html": "<p>Hi</p>",
        "text": "",
        **fields,
    }
    return OutgoingMessage(**values)


def parsed(source: bytes):
    return email.message_from_bytes(source, policy=policy.default)


def with_crlf(text: str) -> str:
    """Return text with CRLF for every line end, including bare CR and LF (RFC 2045, section 6.8)."""
    return re.sub(r"\r\n|\r|\n", "\r\n", text)


# Header text that requests accept: no control characters, separators or surrogates.
HEADER_TEXT = st.text(max_size=300).filter(lambda text: not FORBIDDEN.search(text))


def test_a_message_has_its_headers_once_and_in_order():
    assert parsed(compose(outgoing_message())).keys() == HEADERS


def test_the_date_is_that_of_the_outgoing_message():
    assert parsed(compose(outgoing_message()))["Date"] == "Sat, 21 Nov 2026 06:20:00 +0000"


def test_composing_twice_gives_the_same_bytes():
    assert compose(outgoing_message()) == compose(outgoing_message())


@given(HEADER_TEXT)
def test_a_subject_is_read_back_as_it_was_given(subject):
    message = parsed(compose(outgoing_message(subject=subject)))
    assert message["Subject"] == subject
    assert message.keys() == HEADERS


def display_name(source: bytes) -> str:
    """Return the sender's name decoded by RFC 2047; the newer parser adds spaces between encoded words of a name."""
    phrase = email.message_from_bytes(source)["From"].replace("\r\n", "").rpartition("<")[0].strip()
    if phrase.startswith('"'):
        return re.sub(r"\\(.)", r"\1", phrase[1:-1])
    return str(make_header(decode_header(phrase)))


@given(HEADER_TEXT)
def test_a_name_is_read_back_as_it_was_given(name):
    assume(name.strip() == name)
    sender, to = Address(name, "hi@alice.example"), Address(name, "ada@example.com")
    source = compose(outgoing_message(sender=sender, to=(to,) * 3))
    message = parsed(source)
    (sender,) = message["From"].addresses
    assert sender.addr_spec == "hi@alice.example"
    assert display_name(source) == name
    assert [address.addr_spec for address in message["To"].addresses] == ["ada@example.com"] * 3
    assert message.keys() == HEADERS


@given(
    st.text(max_size=60), st.sampled_from(["\r", "\n", "\r\n", "\0", "\x0b", "\x85", "\u2028"]), st.text(max_size=60)
)
def test_a_value_that_could_end_a_line_is_refused(before, end, after):
    for fields in ({"subject": before + end + after}, {"sender": Address(before + end + after, "a@b.co")}):
        with pytest.raises(UnsafeHeader):
            compose(outgoing_message(**fields))


@each("subject", ["=?utf-8?q?=0d=0aBcc:_eve@example.com?=", "a =?utf-8?b?SGk=?= b", "=?", "  two  spaces ", "x" * 998])
def test_a_subject_that_looks_encoded_or_would_not_fold_is_read_back_too(subject):
    assert parsed(compose(outgoing_message(subject=subject)))["Subject"] == subject


@given(HEADER_TEXT, HEADER_TEXT)
def test_lines_stay_within_their_limits(subject, name):
    source = compose(outgoing_message(subject=subject, to=(Address(name.strip(), "ada@example.com"),)))
    assert source.isascii()
    for line in source.split(b"\r\n"):
        assert len(line) <= 78
        assert b"\r" not in line
        assert b"\n" not in line


@given(st.text(alphabet=st.sampled_from("ab.\r\n \t=-é😀"), max_size=200), st.text(max_size=200))
def test_bodies_arrive_as_they_were_given(html, text):
    html = "".join(character for character in html + text if not "\ud800" <= character <= "\udfff") + "<p>"
    message = parsed(compose(outgoing_message(html=html, text="T")))
    plain, rich = message.iter_parts()
    assert rich.get_payload(decode=True).decode() == with_crlf(html)
    assert plain.get_content() == "T"


def test_empty_bodies_are_one_empty_text_part():
    message = parsed(compose(outgoing_message(html="", text="")))
    assert (message.get_content_type(), message.get_content().strip()) == ("text/plain", "")


def test_text_alone_is_one_part():
    message = parsed(compose(outgoing_message(html="", text="Hello\n")))
    assert (message.get_content_type(), message.get_content()) == ("text/plain", "Hello\r\n")


def test_html_alone_gets_a_text_part_with_its_text_and_links():
    html = (
        "<html><head><style>p{}</style><title>T</title></head><body><p>Hello <b>Ada</b></p>"
        "<ul><li>one<li>two</ul><a href='https://x.example/a?b=1&amp;c=2'>Open</a></body></html>"
    )
    plain, _ = parsed(compose(outgoing_message(html=html))).iter_parts()
    assert plain.get_content() == with_crlf("Hello Ada\n\n- one\n- two\nOpen (https://x.example/a?b=1&c=2)\n")


@each("real", emails())
def test_real_emails_have_text_and_no_tags_in_it(real):
    plain, _ = parsed(compose(outgoing_message(html=real.html, subject=real.subject))).iter_parts()
    text = plain.get_content()
    assert len(text.split()) > 5
    assert "<td" not in text
    assert "mso" not in text


@given(st.text(max_size=100))
def test_parsing_an_address_raises_only_invalid_address(text):
    try:
        address = parse_address(text)
    except InvalidAddress:
        return
    assert parse_address(str(address)) == address


@given(HEADER_TEXT.map(str.strip))
def test_a_name_round_trips_through_parsing(name):
    import unicodedata

    address = Address(unicodedata.normalize("NFC", name), "a@b.co")
    assert parse_address(str(address)) == address


class TestUnsubscribeHeaders:
    URL = "https://mail.example/u/" + "t" * 40

    def test_a_url_adds_both_one_click_headers(self):
        message = parsed(compose(outgoing_message(unsubscribe_url=self.URL)))
        assert message["List-Unsubscribe"].strip() == f"<{self.URL}>"
        assert message["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"

    def test_no_url_adds_neither_header(self):
        assert not {"List-Unsubscribe", "List-Unsubscribe-Post"} & set(parsed(compose(outgoing_message())).keys())

    @each("length", [1, 60, 61, 62, 500, 900])
    def test_a_long_url_is_on_a_separate_line_and_never_folded(self, length):
        url = "https://" + "u" * length
        source = compose(outgoing_message(unsubscribe_url=url))
        assert f"<{url}>\r\n".encode() in source
        assert (b"List-Unsubscribe:\r\n <" in source) == (len("List-Unsubscribe: <>") + len(url) > 76)
        assert max(map(len, source.split(b"\r\n"))) <= 998

    @each("url", [
            "", "https://", "ftp://a.example", "mailto:a@b.co", "javascript:alert(1)", "https://é.example",
            "https://a b",
            "https://a>,<https://b", "https://a\r\nBcc: eve@example.com", 'https://a"b', "https://" + "u" * 901,
        ])  # fmt: skip
    def test_a_value_that_is_not_an_ascii_url_is_refused(self, url):
        with pytest.raises(UnsafeHeader):
            compose(outgoing_message(unsubscribe_url=url or " "))


class TestFeedbackId:
    @each("value", ["alice", "a:b:c:alice", "ws_1:alice.example", "a:b:c:" + "s" * 15])
    def test_a_valid_value_is_sent(self, value):
        assert parsed(compose(outgoing_message(feedback_id=value)))["Feedback-ID"] == value

    def test_a_long_value_is_folded_in_front_of_it(self):
        value = f"tpl_{'t' * 22}:ws_{'w' * 22}:transactional:postrider"
        source = compose(outgoing_message(feedback_id=value))
        assert max(map(len, source.split(b"\r\n"))) <= 78
        assert email.message_from_bytes(source)["Feedback-ID"].strip() == value

    @each(
        "value",
        ["four", "s" * 16, "a:b:c:d:alice", "a b:alice", "é:alice", "a:alice\r\nBcc: eve@example.com", ":alice"],
    )
    def test_an_invalid_value_is_refused(self, value):
        with pytest.raises(UnsafeHeader):
            compose(outgoing_message(feedback_id=value))


class TestAutomaticReplies:
    def test_are_declined_without_declining_bounces(self):
        message = parsed(compose(outgoing_message()))
        assert message["Auto-Submitted"] == "auto-generated"
        assert message["X-Auto-Response-Suppress"] == "OOF, AutoReply"

    def test_a_custom_header_replaces_the_default(self):
        message = parsed(compose(outgoing_message(headers=(("x-auto-response-suppress", "None"),))))
        assert message.get_all("X-Auto-Response-Suppress") == ["None"]


class TestFiles:
    def types(self, *files: File) -> list[str]:
        return [part["Content-Type"] for part in parsed(compose(outgoing_message(files=files))).iter_attachments()]

    @each("given", ["message/partial; id=a", "Message/External-Body", "multipart/mixed; boundary=b"])
    def test_composite_types_are_sent_as_octet_stream(self, given):
        source = compose(outgoing_message(files=(File("a.eml", given, b"Subject: x\r\n\r\n--b\r\n"),)))
        (attached,) = parsed(source).iter_attachments()
        assert (attached["Content-Type"], attached.get_filename()) == ("application/octet-stream", "a.eml")
        assert attached.get_content() == b"Subject: x\r\n\r\n--b\r\n"

    @each("given", ["message/rfc822", "Message/Global"])
    @each("end", ["\r\n", "\n"])
    def test_an_attached_message_keeps_its_type_and_its_lines(self, given, end):
        inner = end.join(
            ["DKIM-Signature: v=1", "Subject: x", "Content-Type: multipart/mixed; boundary=b", "", "--b", ""]
        )
        source = compose(outgoing_message(files=(File("a.eml", given, inner.encode()),)))
        (attached,) = parsed(source).iter_attachments()
        assert (attached["Content-Type"], attached.get_filename()) == (given, "a.eml")
        assert attached["Content-Transfer-Encoding"] == "7bit"
        assert with_crlf(inner).encode() in source
        assert source.endswith(b"--\r\n")

    @each("line", [b"\xe9", b"\0", b"a\rb", b"x" * 999])
    def test_an_attached_message_that_needs_an_encoding_is_sent_as_octet_stream(self, line):
        inner = b"Subject: x\r\n\r\n" + line + b"\r\n"
        (attached,) = parsed(
            compose(outgoing_message(files=(File("a.eml", "message/rfc822", inner),)))
        ).iter_attachments()
        assert (attached["Content-Type"], attached.get_content()) == ("application/octet-stream", inner)

    def test_the_lines_of_a_large_attached_message_are_checked_in_linear_time(self):
        inner = b"Subject: x\r\n\r\n" + (b"x" * 998 + b"\r\n") * 10_000
        started = time.thread_time()
        assert inner in compose(outgoing_message(files=(File("a.eml", "message/rfc822", inner),)))
        assert time.thread_time() - started < 0.5

    def test_a_receipt_is_a_report_of_its_kind(self):
        """RFC 8098, section 3: the text, then the notification, then the message that it is about."""
        notification = (
            b"Final-Recipient: rfc822;hi@alice.example\r\nDisposition: manual-action/MDN-sent-manually; displayed\r\n"
        )
        files = (
            File("file-1.bin", "message/disposition-notification", notification),
            File("message.eml", "message/rfc822", b"Subject: Invoice\r\n\r\n"),
        )
        message = parsed(compose(outgoing_message(html="", text="Your message was displayed.", files=files)))
        assert message.get_content_type() == "multipart/report"
        assert message.get_param("report-type") == "disposition-notification"
        text, receipt, original = message.iter_parts()
        assert (text.get_content_type(), original.get_content_type()) == ("text/plain", "message/rfc822")
        assert (receipt.get_content_type(), receipt["Content-Disposition"]) == (files[0].content_type, None)
        (fields,) = receipt.get_payload()
        assert fields["Disposition"] == "manual-action/MDN-sent-manually; displayed"

    @each(("filename", "given", "name"), [
        ("smime.p7s", "application/pkcs7-signature", "smime.p7s"),
        ("smime.p7m", "application/X-pkcs7-mime; smime-type=enveloped-data", "smime.p7m"),
        ("Ä.p7m", "application/pkcs7-mime", None),
        ("a.pdf", "application/pdf", None),
    ])  # fmt: skip
    def test_a_file_of_smime_has_its_name_with_its_type(self, filename, given, name):
        (attached,) = parsed(compose(outgoing_message(files=(File(filename, given, b"0"),)))).iter_attachments()
        assert attached.get_param("name") == name
        assert attached.get_filename() == filename

    @each(("given", "data", "expected"), [
        ("text/csv", "é".encode(), "text/csv; charset=utf-8"), ("text/csv", b"e", "text/csv"),
        ("text/csv", b"\xe9", "text/csv"), ("text/csv; charset=latin-1", "é".encode(), "text/csv; charset=latin-1"),
        ("application/json", "é".encode(), "application/json"),
    ])  # fmt: skip
    def test_unicode_text_without_a_charset_gets_utf_8(self, given, data, expected):
        source = compose(outgoing_message(files=(File("a", given, data),)))
        (attached,) = email.message_from_bytes(source).get_payload()[1:]
        assert (attached["Content-Type"], attached.get_payload(decode=True)) == (expected, data)

    def test_long_parameters_are_folded_outside_of_their_quotes(self):
        given = 'text/x; a="b; c"; d=' + "e" * 50 + "; f=g"
        (attached,) = email.message_from_bytes(compose(outgoing_message(files=(File("a", given, b""),)))).get_payload()[
            1:
        ]
        assert attached.get_params()[1:] == [("a", "b; c"), ("d", "e" * 50), ("f", "g")]

    @each("broken", [{"content_type": "a/b\r\nX: y"}, {"content_id": "a\r\nX: y"}])
    def test_a_field_that_could_end_a_line_is_refused(self, broken):
        values = {"filename": "a", "content_type": "a/b", "data": b"", "content_id": "c", **broken}
        with pytest.raises(UnsafeHeader):
            compose(outgoing_message(files=(File(**values),)))

    def test_an_inline_file_without_html_is_an_attachment(self):
        source = compose(outgoing_message(html="", text="Hi", files=(File("a.png", "image/png", b"\0", "logo"),)))
        (attached,) = parsed(source).iter_attachments()
        assert (attached.get_content_disposition(), attached["Content-ID"]) == ("attachment", None)

    def test_related_parts_declare_the_type_of_the_first_part(self):
        message = parsed(compose(outgoing_message(files=(File("a.png", "image/png", b"\0", "logo"),))))
        assert message["Content-Type"].params["type"] == "multipart/alternative"

    def test_ten_megabytes_need_at_most_two_and_a_half_times_their_size(self):
        import tracemalloc

        large = File("a.bin", "application/octet-stream", bytes(range(256)) * 40 * 1024)
        message = outgoing_message(files=(large,), key=SigningKey("alice.example", "pr1", _private_key()))
        tracemalloc.start()
        try:
            size = len(message.to_bytes())
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert size > 14_000_000
        assert peak < 2.5 * size


INVITATION = File("", "text/calendar; method=REQUEST", b"BEGIN:VCALENDAR", placement=Placement.ALTERNATIVE)
AMP = File("", "text/x-amp-html", b"<html amp4email>", placement=Placement.ALTERNATIVE)


def test_an_invitation_is_the_last_alternative():
    message = parsed(compose(outgoing_message(files=(INVITATION,))))
    assert [part.get_content_type() for part in message.iter_parts()] == ["text/plain", "text/html", "text/calendar"]
    invitation = list(message.iter_parts())[-1]
    assert invitation.get_param("method") == "REQUEST"
    assert invitation.get_payload(decode=True) == b"BEGIN:VCALENDAR"
    assert invitation["Content-Disposition"] is None


def test_an_invitation_is_an_alternative_of_plain_text_too():
    message = parsed(compose(outgoing_message(html="", text="Hi", files=(INVITATION,))))
    assert [part.get_content_type() for part in message.iter_parts()] == ["text/plain", "text/calendar"]


def test_other_alternatives_are_shown_instead_of_the_html_only_by_programs_that_prefer_them():
    message = parsed(compose(outgoing_message(files=(AMP, INVITATION))))
    kinds = [part.get_content_type() for part in message.iter_parts()]
    assert kinds == ["text/plain", "text/x-amp-html", "text/html", "text/calendar"]


def test_a_signed_body_keeps_its_bytes():
    body = b"--b\r\nContent-Type: text/plain\r\n\r\nSigned. \r\n--b\r\nContent-Type: x/y\r\n\r\nsig\r\n--b--"
    content_type = 'multipart/signed; protocol="application/pgp-signature"; micalg=pgp-sha256; boundary="b"'
    source = compose(outgoing_message(files=(File("", content_type, body, placement=Placement.WHOLE),)))
    head, _, rest = source.partition(b"\r\n\r\n")
    assert rest == body + b"\r\n"
    assert parsed(source).get_content_type() == "multipart/signed"
    assert head.count(b"Content-Type:") == 1


def test_an_encrypted_message_is_the_only_part():
    file = File("smime.p7m", "application/pkcs7-mime; smime-type=enveloped-data", b"\0\1", placement=Placement.WHOLE)
    message = parsed(compose(outgoing_message(files=(file,))))
    assert message.get_content_type() == "application/pkcs7-mime"
    assert (message.get_param("smime-type"), message.get_param("name")) == ("enveloped-data", "smime.p7m")
    assert message.get_payload(decode=True) == b"\0\1"
