"""The MIME reader: equal to Python's on well-formed messages, and bounded on all others."""

import contextlib
import email
import time
from dataclasses import replace
from email import policy
from email.message import EmailMessage

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.lib.mail.mime import MAX_BOUNDARY, MimePart, read_message
from core.lib.mail.mime_policy import MalformedMime, MimePolicy, TooManyParts
from tests.conftest import examples
from tests.rows import each

TOLERANT = MimePolicy(max_depth=20, max_parts=250, max_header_bytes=128 * 1024)
STRICT = replace(TOLERANT, is_strict=True)
OPENING = replace(TOLERANT, opens_messages=True)
POLICIES = pytest.mark.parametrize("policy", [TOLERANT, STRICT, OPENING], ids=["tolerant", "strict", "opening"])
MEBIBYTE = 1024 * 1024
MAX_SECONDS = 2

WORDS = st.text(st.characters(blacklist_categories=("Cs", "Cc", "Zl", "Zp", "Zs")), min_size=1, max_size=40)
BODIES = st.text(st.characters(blacklist_categories=("Cs", "Cc")) | st.just("\n"), max_size=200)


def leaves(source: bytes, policy: MimePolicy = TOLERANT) -> list[MimePart]:
    return [part for part in read_message(source, policy).walk() if not part.is_container]


def multipart(body: bytes, boundary: str = "b") -> bytes:
    return f"Content-Type: multipart/mixed; boundary={boundary}\r\n\r\n".encode() + body


def nested(levels: int, *, boundary: bytes = b"x") -> bytes:
    parts = (
        b"Content-Type: multipart/mixed; boundary=%s%d\r\n\r\n--%s%d\r\n" % (boundary, level, boundary, level)
        for level in range(levels)
    )
    return b"".join(parts)


@st.composite
def leaf(draw) -> EmailMessage:
    """Return a text or a file, encoded in one of the usual ways."""
    message = EmailMessage(policy=policy.SMTP)
    encoding = draw(st.sampled_from(["quoted-printable", "base64", "8bit"]))
    if draw(st.booleans()):
        message.set_content(draw(BODIES), subtype=draw(st.sampled_from(["plain", "html", "calendar"])), cte=encoding)
    else:
        message.set_content(draw(st.binary(max_size=200)), "application", "pdf", cid="<a@b>")
    if draw(st.booleans()):
        message["Content-Disposition"] = draw(st.sampled_from(["attachment", "inline"]))
        message.set_param("filename", draw(WORDS), "Content-Disposition", charset="utf-8")
    return message


@st.composite
def multipart_of(draw, parts) -> EmailMessage:
    message = EmailMessage(policy=policy.SMTP)
    message["X-Long-Name"] = draw(WORDS)
    message["Content-Type"] = draw(st.sampled_from(["multipart/mixed", "multipart/related", "multipart/alternative"]))
    for part in draw(st.lists(parts, min_size=1, max_size=3)):
        message.attach(part)
    return message


@st.composite
def attached(draw, parts) -> EmailMessage:
    """Return an attached message."""
    message = EmailMessage(policy=policy.SMTP)
    message["Subject"] = draw(WORDS)
    message.set_content(draw(parts))
    return message


def to_bytes(message: EmailMessage) -> bytes:
    for number, part in enumerate(message.walk()):
        if part.get_content_maintype() == "multipart":
            part.set_boundary(f"=-boundary {number}")
    return message.as_bytes()


MESSAGES = st.recursive(leaf(), lambda parts: multipart_of(parts) | attached(parts), max_leaves=6).map(to_bytes)


class TestWellFormedMessages:
    @settings(max_examples=examples(300))
    @given(MESSAGES)
    def test_the_parts_are_those_of_the_standard_library(self, source):
        expected = email.message_from_bytes(source, policy=policy.compat32)
        for mode in (OPENING, replace(STRICT, opens_messages=True)):
            parts = list(read_message(source, mode).walk())
            assert [summary_of(part) for part in expected.walk()] == [
                (part.kind, part.is_container, part.disposition, part.filename, part.charset, content_of(part))
                for part in parts
            ]

    @settings(max_examples=examples(300))
    @given(MESSAGES)
    def test_the_header_fields_are_those_of_the_standard_library(self, source):
        expected = email.message_from_bytes(source, policy=policy.default)
        fields = read_message(source, STRICT).fields
        assert [field.name for field in fields] == expected.keys()
        names = {"Subject", "X-Long-Name"}
        assert [field.decoded for field in fields if field.name in names] == [
            str(value).strip() for name, value in expected.items() if name in names
        ]

    @given(MESSAGES)
    def test_an_attached_message_has_its_exact_bytes(self, source):
        body = b"--b\r\nContent-Type: message/rfc822\r\n\r\n" + source + b"\r\n--b--\r\n"
        if b"\r\n--b" not in source:
            assert [part.content for part in leaves(multipart(body), STRICT)] == [source]

    @given(MESSAGES)
    def test_all_line_ends_are_read_alike(self, source):
        for other in (b"\n", b"\r"):
            parts = leaves(source.replace(b"\r\n", other))
            assert [(part.kind, part.filename) for part in parts] == [
                (part.kind, part.filename) for part in leaves(source)
            ]

    @each(("parameters", "name"), [
        ('filename="a b.pdf"', "a b.pdf"), ("filename=a b.pdf; size=3", "a b.pdf"),
        (r'filename="a\"b;\\.pdf"', 'a"b;\\.pdf'), (r'filename="C:\x\a.pdf"', r"C:\x\a.pdf"),
        ("filename*=utf-8'de'%C3%A4.pdf", "ä.pdf"), ("filename*=x-unknown''%C3%A4.pdf", "ä.pdf"),
        ("filename*1*=%C3%A4; filename*0*=iso-8859-1''%e4; filename*2=.pdf", "äÃ¤.pdf"),
        ("filename*0=a; filename*1=b; filename*3=c", "abc"), ("filename*=utf-8''a; filename*0=b", "a"),
        ("filename*=\0''a", "a"), ('filename="=?utf-8?q?=C3=A4.pdf?="', "ä.pdf"), ('filename="a', "a"),
        ("filename", ""),
    ])  # fmt: skip
    def test_a_file_name_is_decoded(self, parameters, name):
        (part,) = leaves(f"Content-Disposition: attachment; {parameters}\r\n\r\n".encode())
        assert part.filename == name


def summary_of(part: email.message.Message) -> tuple[str, bool, str, str, str, bytes]:
    content = b"" if part.is_multipart() else part.get_payload(decode=True)
    return (
        part.get_content_type(),
        part.is_multipart(),
        part.get_content_disposition() or "",
        part.get_filename() or "",
        part.get_content_charset() or "",
        content,
    )


def content_of(part: MimePart) -> bytes:
    return b"" if part.is_container else part.content


class TestStructure:
    @each(("length", "parts"), [(MAX_BOUNDARY, 1), (MAX_BOUNDARY + 1, 0)])
    def test_a_boundary_has_a_longest_length(self, length, parts):
        boundary = "b" * length
        source = multipart(f"--{boundary}\r\n\r\nHi\r\n--{boundary}--\r\n".encode(), boundary)
        assert len([part for part in leaves(source, TOLERANT) if part.body == b"Hi"]) == parts

    def test_a_boundary_may_begin_with_another(self):
        inner = multipart(b"--aab\r\n\r\none\r\n--aab--\r\n", "aab")
        source = multipart(b"--aa\r\n" + inner + b"--aa\r\n\r\ntwo\r\n--aa--\r\n", "aa")
        for mode in (STRICT, TOLERANT):
            assert [(part.body, part.depth) for part in leaves(source, mode)] == [(b"one", 2), (b"two", 1)]

    def test_the_inner_of_two_equal_boundaries_counts_or_the_message_is_refused(self):
        source = multipart(b"--b\r\n" + multipart(b"--b\r\n\r\none\r\n--b--\r\n--b\r\n\r\ntwo\r\n--b--\r\n"))
        assert [(part.depth, part.body) for part in leaves(source)] == [(2, b"one"), (1, b"two")]
        with pytest.raises(MalformedMime):
            leaves(source, STRICT)

    def test_an_outer_delimiter_ends_an_open_part(self):
        source = multipart(b"--b\r\n" + multipart(b"--c\r\n\r\none\r\n--b\r\n\r\ntwo", "c"))
        for mode in (STRICT, TOLERANT):
            assert [part.body for part in leaves(source, mode)] == [b"one", b"two"]

    def test_a_delimiter_ends_a_header(self):
        source = multipart(b"--b\r\nContent-Type: a/b\r\n--b\r\n--b\r\n\r\n--b\r\n\r\n\r\n--b--")
        for mode in (STRICT, TOLERANT):
            assert [(part.kind, part.body) for part in leaves(source, mode)] == [
                ("a/b", b""),
                *[("text/plain", b"")] * 3,
            ]

    def test_text_around_the_parts_is_ignored(self):
        source = multipart(b"before\r\n--bb\r\n--b \t\r\n\r\none\r\n--b--\r\nafter\r\n--b\r\n\r\nlate\r\n")
        assert [part.body for part in leaves(source, STRICT)] == [b"one"]

    @each("source", [
        multipart(b"lost\r\n"),
        b"Content-Type: multipart/mixed\r\n\r\nlost\r\n",
        multipart(b"--x\r\nlost\r\n", "x" * 201),
        multipart(b"lost\r\n").replace(b"\r\n", b"\n"),
    ])  # fmt: skip
    def test_a_multipart_without_parts_is_text_or_refused(self, source):
        (part,) = leaves(source)
        assert (part.kind, "lost" in part.text) == ("text/plain", True)
        with pytest.raises(MalformedMime):
            leaves(source, STRICT)

    @each(("source", "text"), [
        (b"no field\r\n\r\nHi", "no field\n\nHi"), (b"Subject: x\r\nno field\r\n\r\nHi", "no field\n\nHi"),
        (b"\r\nHi", "Hi"),
        (b"Content-Transfer-Encoding: x-odd\r\n\r\nHi", "Hi"),
        (b"Content-Transfer-Encoding: base64\r\n\r\nSGkh\r\nS", "Hi!"),
        (b"Content-Type: text/plain; charset=x-odd\r\n\r\n\xff", "ÿ"),
    ])  # fmt: skip
    def test_what_can_be_read_is_read_or_refused(self, source, text):
        (part,) = leaves(source)
        assert part.text == text
        with pytest.raises(MalformedMime):
            _ = [part.text for part in leaves(source, STRICT)]

    @POLICIES
    def test_the_number_of_parts_is_bounded(self, policy):
        part = b"--b\r\n\r\nx\r\n"
        assert len(leaves(multipart(part * 250), policy)) == 250
        with pytest.raises(TooManyParts):
            leaves(multipart(part * 251), policy)

    def test_the_depth_is_bounded(self):
        assert [part.depth for part in leaves(nested(20) + b"\r\nHi", STRICT)] == [20]
        (part,) = leaves(nested(21) + b"\r\nHi")
        assert (part.depth, part.kind, part.text.endswith("Hi")) == (20, "text/plain", True)
        with pytest.raises(MalformedMime):
            leaves(nested(21) + b"\r\nHi", STRICT)

    @each(("most", "more"), [
        (b"a: b\r\n" * 400 + b"\r\n", b"a: b\r\n" * 401 + b"\r\n"),
        (b"a:" + b"x" * (128 * 1024 - 5) + b"\n\n", b"a:" + b"x" * (128 * 1024) + b"\n\n"),
        (b"Content-Type: a/b; c=" + b"x" * 3_992 + b"\n\n", b"Content-Type: a/b; c=" + b"x" * 4_000 + b"\n\n"),
        (b"a: b\n\n" + bytes(25 * MEBIBYTE - 6), b"a: b\n\n" + bytes(25 * MEBIBYTE)),
    ])  # fmt: skip
    def test_a_bound_is_cut_at_or_refused(self, most, more):
        for source, mode in ((most, STRICT), (most, TOLERANT), (more, TOLERANT)):
            (part,) = leaves(source, mode)
            assert len(part.fields) <= 400
            assert len(part.parameters.get("c", "")) <= 4_000
        with pytest.raises(MalformedMime):
            _ = [part.kind for part in leaves(more, STRICT)]


# Functions: together the messages would take half a gigabyte.
HOSTILE = {
    "empty lines": lambda size: b"a: b\n" + b"\n" * 25 * size,
    "empty lines before a part": lambda size: multipart(b"\r\n" * 12 * size),
    "empty lines in a part": lambda size: multipart(b"--b\r\n\r\n" + b"\r\n" * 12 * size),
    "nested parts": lambda _: nested(250),
    "nested parts and dashes": lambda size: nested(20) + b"\r\n--" * 6 * size,
    "nested boundaries that begin alike": lambda size: (
        nested(20, boundary=b"x" * 190) + (b"\r\n--" + b"x" * 191) * (size // 8)
    ),
    "delimiters with spaces": lambda size: nested(20) + (b"\r\n--x1" + b" " * 60_000 + b"x") * (size // 2_600),
    "siblings in nested parts": lambda _: (
        nested(19, boundary=b"x" * 190) + (b"\r\n--" + b"x" * 190 + b"18\r\n" + nested(1)) * 200
    ),
    "lines that begin as delimiters": lambda size: nested(10) + b"\r\n--x9x" * 3 * size,
    "parts without a header": lambda size: multipart(b"--b\r\n" * 5 * size),
    "parts without an empty line": lambda size: multipart((b"--b\r\n" + b"a: b\r\n" * (size // 50)) * 200),
    "attached messages": lambda size: b"Content-Type: message/rfc822\r\n\r\n" * (size * 3 // 4),
    "a long line": lambda size: multipart(b"--b\r\n" + b"x" * 25 * size),
    "fields": lambda size: b"a: b\r\n" * 4 * size,
    "folds": lambda size: b"a: b" + b"\r\n " * 8 * size,
    "a long parameter": lambda size: multipart(b"", "x" * size),
    "open quotes": lambda size: b"Content-Type: a/b" + b';a="\\' * (size * 3 // 10) + b"\r\n\r\n",
    "sections": lambda _: b"Content-Disposition: a" + b"; filename*99*=''%" * 200 + b"\r\n\r\n",
    "base64 of nothing": lambda size: b"Content-Transfer-Encoding: base64\r\n\r\n" + b"=" * 25 * size,
    "base64 of garbage": lambda size: b"Content-Transfer-Encoding: base64\r\n\r\n" + b"!\n" * 12 * size,
    "soft line ends": lambda size: b"Content-Transfer-Encoding: quoted-printable\r\n\r\n" + b"=\r\n" * 8 * size,
    "a slow charset": lambda size: b"Content-Type: text/plain; charset=utf-7\r\n\r\n" + b"+A" * 12 * size,
    "an unknown charset": lambda size: b"Content-Type: text/plain; charset=x-odd\r\n\r\n" + b"\xff" * 25 * size,
    "CR only": lambda size: b"\r" * 25 * size,
    "CR and CRLF": lambda size: b"a\r" + b"\r\r\n" * 8 * size,
    "empty lines in front": lambda size: b"\r\n" * 12 * size + b"X: y",
    "encoded words": lambda _: b"Subject: " + b"=?utf-8?q?" * 10_000 + b"\r\n\r\n",
}


def seconds(source: bytes) -> float:
    started = time.thread_time()
    with contextlib.suppress(TooManyParts):
        for part in read_message(source, OPENING).walk():
            read_all(part)
    return time.thread_time() - started


@each("name", HOSTILE)
def test_a_hostile_message_is_read_in_linear_time(name):
    short, long = (HOSTILE[name](size) for size in (MEBIBYTE // 64, MEBIBYTE // 16))
    # Interleaved, so that other load slows down both. 16 in quadratic time.
    quick, slow = map(min, zip(*[(seconds(short), seconds(long)) for _ in range(3)], strict=True))
    assert slow < 6.7 * quick + 0.05


@pytest.mark.long
@each("name", HOSTILE)
def test_a_hostile_message_of_25_mebibytes_is_read_in_two_seconds(name):
    assert seconds(HOSTILE[name](MEBIBYTE)) < MAX_SECONDS


def test_a_boundary_costs_no_more_than_its_bytes():
    inner, outer = "\U0001f600" * 190, "\U0001f601" * 190
    parts = (
        f"\r\n--{outer}8\r\nContent-Type: multipart/mixed; boundary={inner}{number}\r\n\r\n--{inner}{number}\r\n\r\n"
        for number in range(100)
    )
    source = nested(9, boundary=outer.encode()) + "".join(parts).encode()
    started = time.thread_time()
    with pytest.raises(TooManyParts):
        leaves(source, replace(STRICT, max_parts=100))
    assert time.thread_time() - started < 0.1


def read_all(part: MimePart) -> None:
    """Read everything of a part that a program may ask for."""
    (part.filename + part.content_id + "".join(field.decoded for field in part.fields)).encode("utf-8", "replace")
    if not part.is_container:
        part.text.encode("utf-8", "replace")


PIECES = st.sampled_from(
    [
        *(b"\r\n", b"\n", b"\r", b"\r\n\r\n", b"--b", b"--", b"--b--\r\n", b"; boundary=b", b"; charset=utf-16", b'"'),
        *(b"Content-Type: multipart/mixed; boundary=b\r\n\r\n", b"Content-Type: message/rfc822\r\n\r\n", b"a: b\r\n"),
        *(
            b"Content-Transfer-Encoding: base64\r\n",
            b"Content-Disposition: x; filename*=utf-8''%",
            b"*1*='",
            b"=?a?b?c?=",
        ),
    ]
)


@settings(max_examples=examples(500))
@given(st.lists(PIECES | st.binary(max_size=10), max_size=40).map(b"".join))
def test_any_bytes_are_read_or_refused(source):
    for mode in (TOLERANT, OPENING):
        parts = list(read_message(source, mode).walk())
        assert all(part.start <= len(source) and part.end <= len(source) for part in parts)
        for part in parts:
            read_all(part)
    with contextlib.suppress(MalformedMime):
        for part in read_message(source, STRICT).walk():
            read_all(part)
