"""Reading messages of all kinds: texts, attachments, fields, and what cannot be read."""

import base64
import hashlib

import pytest

from receiving.reading.budget import ProcessorBudget, TooExpensive
from receiving.reading.message import Reading, read_received
from receiving.reading.quotes import find_reply
from tests.rows import each


def read(source: bytes | str, *, envelope_from: str = "ada@example.com") -> Reading:
    data = source.encode() if isinstance(source, str) else source
    return read_received(data.replace(b"\n", b"\r\n"), envelope_from=envelope_from, budget=ProcessorBudget())


MIXED = """From: "Lovelace, Ada" <Ada@Example.com>
To: Support <support@in.example>, second@in.example
Cc: Team: grace@example.com, "Hopper; Grace" <hopper@example.com>;
Reply-To: =?utf-8?q?Ad=C3=A4?= <reply@example.com>
Subject: =?utf-8?q?Gr=C3=BC?=
 =?utf-8?q?=C3=9Fe?=
Date: Fri, 20 Nov 2026 10:12:29 +0100
Message-ID: <one@example.com>
In-Reply-To: <0@alice.example> (that)
References: <a@x>
 <b@x> <c@x>
MIME-Version: 1.0
Content-Type: multipart/mixed; boundary=m

preamble
--m
Content-Type: multipart/alternative; boundary=a

--a
Content-Type: text/plain; charset=iso-8859-1
Content-Transfer-Encoding: quoted-printable

Gr=FC=DFe

On Fri, Nov 20, 2026 at 9:00 AM Support <support@in.example> wrote:
> Hello
--a
Content-Type: multipart/related; boundary=r

--r
Content-Type: text/html; charset=utf-8

<p>Gr\u00fc\u00dfe <img src="cid:logo">
--r
Content-Type: image/png; name="../logo.png"
Content-Transfer-Encoding: base64
Content-ID: <logo>
Content-Disposition: inline

iVBORw0KGgo=
--r--
--a
Content-Type: text/calendar; method=request; charset=utf-8

BEGIN:VCALENDAR
--a--
--m
Content-Type: text/plain; name=notes.txt
Content-Disposition: attachment

notes
--m
Content-Type: message/rfc822

Subject: Inner

Body of the inner message
--m
Content-Type: text/plain

A footer of a list
--m--
"""


def test_a_message_with_everything_is_read():
    reading = read(MIXED)
    assert reading.text.startswith("Gr\u00fc\u00dfe\n\nOn Fri")
    assert reading.text.endswith("> Hello\nA footer of a list")
    assert reading.reply_text == "Gr\u00fc\u00dfe"
    assert reading.html == '<p>Gr\u00fc\u00dfe <img src="cid:logo"><br>\n<div>A footer of a list</div>'
    assert not reading.text_generated
    assert reading.subject == "Gr\u00fc\u00dfe"
    assert reading.sender == "ada@example.com"
    assert {name: [(one.email, one.name) for one in found] for name, found in reading.mailboxes.items()} == {
        "from": [("Ada@Example.com", "Lovelace, Ada")],
        "to": [("support@in.example", "Support"), ("second@in.example", "")],
        "cc": [("grace@example.com", ""), ("hopper@example.com", "Hopper; Grace")],
        "replyTo": [("reply@example.com", "Ad\u00e4")],
    }
    assert reading.date is not None
    assert reading.date.isoformat() == "2026-11-20T09:12:29+00:00"
    assert (reading.message_id, reading.in_reply_to) == ("<one@example.com>", "<0@alice.example>")
    assert reading.references == ["<a@x>", "<b@x>", "<c@x>"]
    assert reading.headers[0] == ["From", '"Lovelace, Ada" <Ada@Example.com>']
    assert [
        (entry["filename"], entry["contentType"], entry["inline"], entry["method"]) for entry in reading.attachments
    ] == [
        ("logo.png", "image/png", True, None),
        ("", "text/calendar", False, "REQUEST"),
        ("notes.txt", "text/plain", False, None),
        ("", "message/rfc822", False, None),
    ]
    logo = reading.attachments[0]
    assert (logo["size"], logo["contentId"]) == (8, "logo")
    assert logo["sha256"] == hashlib.sha256(base64.b64decode("iVBORw0KGgo=")).hexdigest()
    assert reading.errors == []


def test_an_attached_message_keeps_its_exact_bytes():
    source = MIXED.encode().replace(b"\n", b"\r\n")
    entry = read(MIXED).attachments[3]
    assert source[entry["start"] : entry["end"]] == b"Subject: Inner\r\n\r\nBody of the inner message"


def test_a_text_is_made_from_html_alone():
    reading = read("Content-Type: text/html\n\n<p>Hello <b>Ada</b><p>Bye")
    assert (reading.text, reading.text_generated) == ("Hello Ada\n\nBye\n", True)
    assert reading.reply_text == "Hello Ada\n\nBye"


@each(("charset", "data", "text"), [
    ("utf-8", "Gr\u00fc\u00dfe".encode(), "Gr\u00fc\u00dfe"),
    ("no-such-charset", b"Gr\xfc\xdfe \x80", "Gr\u00fc\u00dfe \u20ac"), ("utf-8", b"Gr\xfc\xdfe", "Gr\u00fc\u00dfe"),
    ("us-ascii", b"\x93quoted\x94", "\u201cquoted\u201d"), ("utf-7", b"+AGE-", "a"),
    ("unicode_escape", b"\\u0041", "\\u0041"), ("gb2312", b"\x81\x30\x81\x30", "\u0080"), ("utf-8", b"a\x00b", "ab"),
    ("x" * 3000, b"Hi", "Hi"),
])  # fmt: skip
def test_any_charset_is_read(charset, data, text):
    reading = read(f"Content-Type: text/plain; charset={charset}\nContent-Transfer-Encoding: 8bit\n\n".encode() + data)
    assert reading.text == text


@each(("fields", "body", "shown"), [
    ("Content-Type: text/html", b"<meta charset=koi8-r>\xf0\xd2", {"html": "<meta charset=koi8-r>\u041f\u0440"}),
    ("Subject: =?utf-8?Q?Best=C3=A4tigung Ihrer Bestellung?=", b"", {"subject": "Best\u00e4tigung Ihrer Bestellung"}),
    ("From: =?utf-8?Q?M=C3=BCller, GmbH & Co?= <a@example.com>", b"", {"sender": "a@example.com"}),
    ("From: =?utf-8?Q?M=C3=BCller GmbH & Co?= <a@example.com>", b"", {"name": "M\u00fcller GmbH & Co"}),
    ("Subject: \x1b$B$*@$OC\x1b(B", b"\x1b$B$*@$OC\x1b(B", {"subject": "\u304a\u4e16\u8a71",
     "text": "\u304a\u4e16\u8a71"}),
    ("Content-Type: text/plain; charset=utf-8", b"\xef\xbb\xbfHello", {"text": "Hello"}),
    ("Content-Type: a/b; name*=shift_jis''%87%40.pdf", b"x", {"filename": "\u2460.pdf"}),
    ('Content-Type: a/b; name="=?shift_jis?Q?=87@ .pdf?="', b"x", {"filename": "\u2460 .pdf"}),
])  # fmt: skip
def test_fields_and_texts_have_the_charsets_of_mail_programs(fields, body, shown):
    reading = read(fields.encode() + b"\n\n" + body)
    found = {
        **vars(reading),
        "sender": reading.sender,
        "name": next((mailbox.name for mailbox in reading.mailboxes["from"]), ""),
        "filename": next((entry["filename"] for entry in reading.attachments), ""),
    }
    assert {name: found[name] for name in shown} == shown


def test_a_field_of_an_old_program_does_not_change_the_others():
    reading = read(b"From: J\xc3\xbcrgen <a@example.com>\nSubject: Gr\xfc\xdfe \x93a\x94\nX-A: \xff\xfea\n\nHi")
    assert (reading.mailboxes["from"][0].name, reading.subject) == ("J\u00fcrgen", "Gr\u00fc\u00dfe \u201ca\u201d")
    assert reading.headers[2] == ["X-A", "\u00ff\u00fea"]


@each(
    ("body", "content"),
    [("aGk=", b"hi"), ("aGk", b"hi"), ("a G*k!", b"hi"), ("aGkh\naGk", b"hi!hi"), ("", b""), ("!!!!", b"")],
)
def test_broken_base64_is_read_as_far_as_possible(body, content):
    source = f"Content-Type: application/pdf; name=a.pdf\nContent-Transfer-Encoding: base64\n\n{body}"
    (entry,) = read(source).attachments
    assert (entry["size"], entry["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())


@each("source", [
    "", "no header", "\n\nbody", "Content-Type: multipart/mixed\n\nno boundary",
    "Content-Type: multipart/mixed; boundary=x\n\nno part", "Content-Type: multipart/mixed; boundary=x\n\n--x",
    "Content-Type: multipart/mixed; boundary=x\n\n--x\n\n--x--\n", "Content-Type: /\n\nHi", "From\n\nHi",
    "From: a@b\r\rHi", "Content-Transfer-Encoding: unknown\n\nHi",
    "Date: nonsense\nFrom: @\nTo: ,,,;;<>\nReferences: <\n\nHi", 'From: "unclosed <a@b>\n\nHi',
    "Date: Fri, 99 Nov 99999 99:99:99 +9999\n\nHi",
])  # fmt: skip
def test_malformed_messages_are_read(source):
    reading = read(source)
    assert isinstance(reading.text, str)


def test_a_multipart_without_a_boundary_is_text():
    assert read("Content-Type: multipart/mixed\n\nHello").text == "Hello"


@each(("text", "reply"), [
    ("Thanks!\n\n> quoted\n> more", "Thanks!"),
    ("> quoted only", "> quoted only"),
    ("Answer\n\nOn Mon, Jan 5, 2026 at 10:00 AM A <a@b.c> wrote:\n> Hello", "Answer"),
    ("Answer\nOn Mon, Jan 5, 2026 at 10:00 AM Ada Lovelace\n<ada@b.c> wrote: \n> Hello", "Answer"),
    ("Answer\nAm 5. Januar 2026 schrieb A <a@b.c>:\nHallo", "Answer"),
    ("Answer\n2026/1/5 A <a@b.c>\nHello", "Answer"),
    ("Answer\n-----Original Message-----\nFrom: A", "Answer"),
    ("Answer\n________________________________\nFrom: A", "Answer"),
    ("Answer\n> Begin forwarded message:\n> Hello", "Answer"),
    ("On Monday, A wrote:\n> Hello", None),
    ("These are three things:\n- One\n- Two", "These are three things:\n- One\n- Two"),
    # Longer than an introduction, and an introduction in front of a long line.
    (f"On {'x' * 300} wrote:\nHello", f"On {'x' * 300} wrote:\nHello"),
    (f"Answer\nOn Mon, Jan 5, 2026 at 10:00 AM, A wrote:\n{'x' * 300}", "Answer"),
    ("", None),
    ("  \n ", None),
    ("Line\n" * 2001, None),
    ("Answer", "Answer"),
])  # fmt: skip
def test_the_reply_is_the_text_in_front_of_quotes(text, reply):
    assert find_reply(text) == reply


def test_large_texts_are_cut():
    source = b"Content-Type: text/plain\n\n" + "\u20ac".encode() * (2 * 1024 * 1024)
    reading = read(source)
    assert reading.truncated == ["text"]
    assert 5 * 1024 * 1024 - 3 < len(reading.text.encode()) <= 5 * 1024 * 1024


def test_lists_have_bounds():
    addresses = ", ".join(f"a{number}@b.example" for number in range(201))
    references = " ".join(f"<{number}@b.example>" for number in range(101))
    source = f"To: {addresses}\nReferences: {references}\n" + "X-Field: 1\n" * 400 + "\nHi"
    reading = read(source)
    assert [mailbox.email for mailbox in reading.mailboxes["to"]][-1] == "a199@b.example"
    assert reading.references[0] == "<1@b.example>"
    assert (len(reading.references), len(reading.headers)) == (100, 400)
    assert reading.errors == ["The header has more than 400 fields", "An address in To was left out"]


def test_parts_and_depth_have_bounds():
    parts = "".join(f"--b\nContent-Type: application/x\n\n{number}\n" for number in range(260))
    reading = read(f"Content-Type: multipart/mixed; boundary=b\n\n{parts}--b--\n")
    assert len(reading.attachments) == 250
    assert reading.errors == ["The message has more than 250 parts"]
    nested = "".join(f"Content-Type: multipart/mixed; boundary=b{number}\n\n--b{number}\n" for number in range(25))
    reading = read(f"{nested}\nHello")
    assert reading.errors == ["The parts are nested deeper than 20 levels"]


def test_a_file_name_is_cut_and_has_no_path():
    name = "x" * 300 + ".txt"
    (entry,) = read(f'Content-Disposition: attachment; filename="a\\\\b/{name}"\n\nHi').attachments
    assert entry["filename"] == "x" * 255


def test_a_reading_ends_when_its_time_is_used_up():
    with pytest.raises(TooExpensive):
        read_received(b"Subject: Hi\r\n\r\nHi", envelope_from="", budget=ProcessorBudget(0))
