"""Malformed structures: read as mail programs read them, with an entry in parseErrors for each repair."""

import base64
import hashlib

from receiving.reading.budget import ProcessorBudget
from receiving.reading.message import AMBIGUOUS_SENDER, Reading, read_received
from tests.rows import each

FROM = "From: Ada <ada@example.com>\nTo: support@in.example\nSubject: Hi\n"
TYPE = "The Content-Type of a part is malformed"
DISPOSITION = "The Content-Disposition of a part is malformed"


def read(source: bytes | str) -> Reading:
    data = source.encode() if isinstance(source, str) else source
    return read_received(data.replace(b"\n", b"\r\n"), envelope_from="ada@example.com", budget=ProcessorBudget())


def with_type(value: str, body: str = "<p>Hi</p>") -> Reading:
    return read(f"{FROM}MIME-Version: 1.0\nContent-Type: {value}\n\n{body}")


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


ALTERNATIVE = "--b1\nContent-Type: text/plain\n\nplain\n--b1\nContent-Type: text/html\n\n<p>html</p>\n--b1--\n"


class TestContentType:
    @each(("value", "is_malformed"), [
        ("text/html; charset=utf-8", False), ("text/html;charset=utf-8;", False), ("TEXT/HTML; Charset=UTF-8", False),
        ("text/html (html); charset=utf-8", False), ("text / html; charset=utf-8", False),
        ('(a (b)) text/html; charset = "utf-8" (see; below)', False), ("text/html; (x) charset=utf-8", False),
        ("text/html charset=utf-8", True), ("text/html, charset=utf-8", True),
        ("text/html; charset=utf-8 format=flowed", True),
        ("text/html;; charset=utf-8", False), ("text/html; charset=utf-8;;", False),
        ('"text/html"; charset=utf-8', True),
        ("text/html:charset=utf-8", True), ("text/html; charset='utf-8'", False), ("text/html; x; charset=utf-8", True),
        ('text/html; charset="utf-8', True), ("text/html\n charset=utf-8", True), ("html; charset=utf-8", False),
    ])  # fmt: skip
    def test_html_is_read_by_every_spelling_of_its_type(self, value, is_malformed):
        reading = with_type(value, "<p>Grüße</p>")
        assert (reading.html, reading.text, reading.attachments) == ("<p>Grüße</p>", "Grüße\n", [])
        assert reading.errors == [TYPE] * is_malformed

    @each(
        "value",
        ["text/plain charset=utf-8", "text", "text/", "plain", "", "; charset=utf-8", "charset=utf-8", "/", "x"],
    )
    def test_a_type_that_cannot_be_read_is_plain_text(self, value):
        reading = with_type(value, "Grüße")
        assert (reading.text, reading.html, reading.attachments) == ("Grüße", "", [])

    @each("value", [
        'multipart/alternative boundary="b1"', "multipart/alternative (x); boundary=b1 (y)",
        "multipart/alternative;boundary=b1;",
        "multipart/alternative, boundary=b1", 'multipart/alternative; boundary="b1"; charset=utf-8',
        "Multipart/Alternative; BOUNDARY=b1",
        "multipart/alternative; charset=utf-8 boundary=b1", 'multipart/alternative; boundary="b1',
        "multipart/alternative",
        "multipart/alternative; boundary=other", 'multipart/alternative; boundary="b1 "',
        "multipart/alternative; boundary",
        'multipart/alternative; boundary="b1; type="text/plain"',
    ])  # fmt: skip
    def test_a_multipart_is_read_by_every_spelling_of_its_type(self, value):
        reading = with_type(value, ALTERNATIVE)
        assert (reading.text, reading.html, reading.attachments) == ("plain", "<p>html</p>", [])

    @each("boundary", ["a b", "a=b;c", "=_(a)_", "----=_Part:1/2?", "'a'", "a,b", "b (c) d"])
    def test_a_boundary_has_any_characters(self, boundary):
        for value in (f'"{boundary}"', boundary):
            reading = with_type(f"multipart/alternative; boundary={value}", ALTERNATIVE.replace("b1", boundary))
            assert (reading.text, reading.html) == ("plain", "<p>html</p>")

    def test_a_text_that_looks_like_a_multipart_is_text(self):
        body = "--\nHi\n--b1\nNo field\n"
        assert with_type("multipart/mixed", body).text == body
        assert with_type("text/plain", ALTERNATIVE).text == ALTERNATIVE

    def test_a_file_keeps_its_type(self):
        reading = with_type("application/pdf name=a.pdf", "x")
        assert [(one["contentType"], one["filename"]) for one in reading.attachments] == [("application/pdf", "a.pdf")]
        (entry,) = with_type("image; name=a.png", "x").attachments
        assert (entry["contentType"], entry["filename"]) == ("application/octet-stream", "a.png")


class TestFileNames:
    @each(("parameters", "name"), [
        ("filename=\"Pr_f.pdf\"; filename*=UTF-8''Pr%C3%BCf.pdf", "Prüf.pdf"),
        ("filename*=UTF-8''Pr%C3%BCf.pdf; filename=\"Pr_f.pdf\"", "Prüf.pdf"),
        ("filename=\"Pr_f.pdf\"; filename*0*=UTF-8''Pr%C3; filename*1*=%BCf.pdf", "Prüf.pdf"),
        ('filename*0="Bericht "; filename*1*=%C3%84.pdf', "Bericht Ä.pdf"),
        ("filename*0=\"a \"; filename*1*=iso-8859-1''%C4.pdf", "a Ä.pdf"),
        ("filename*0*=iso-8859-1''%C4; filename*1=\" 100%25.pdf\"", "Ä 100%25.pdf"),
        ("filename*1=b; filename*0=a; filename*1=c; filename*3=.pdf", "ab.pdf"),
        ("filename*1*=utf-8''b; filename*2=c", "bc"),
        ("filename*=utf-8'Ä.pdf", "Ä.pdf"), ("filename*=Ä%2C.pdf", "Ä,.pdf"), ("filename*=it's.pdf", "it's.pdf"),
        ("filename=report (1).pdf; size=3", "report (1).pdf"), ("filename=report (1)", "report (1)"),
        ("filename=a, b.pdf", "a, b.pdf"),
        ("filename=a b.pdf size=3", "a b.pdf"), ('filename="a.pdf; size=3', "a.pdf"), ('filename="a" b.pdf', "a b.pdf"),
        ('filename = "a.pdf" ; size=3', "a.pdf"), ("filename=a=b.pdf", "a=b.pdf"), ("FileName=a.pdf", "a.pdf"),
        ('filename="=?utf-8?q?=C3=84?=.pdf"', "Ä.pdf"),
    ])  # fmt: skip
    def test_a_name_is_read_by_every_spelling(self, parameters, name):
        (entry,) = read(f"{FROM}Content-Disposition: attachment; {parameters}\n\nx").attachments
        assert entry["filename"] == name

    @each("value",
    ["attachment filename=a.pdf", "attachment, filename=a.pdf", "filename=a.pdf", "ATTACHMENT; filename=a.pdf",
         "attachment;; filename=a.pdf", '"attachment"; filename=a.pdf'])  # fmt: skip
    def test_a_disposition_is_read_by_every_spelling(self, value):
        parts = f"--b\n\nHi\n--b\nContent-Disposition: {value}\n\nx\n--b--"
        reading = with_type("multipart/mixed; boundary=b", parts)
        assert [(one["filename"], one["size"]) for one in reading.attachments] == [("a.pdf", 1)]
        assert reading.text == "Hi"


class TestTransferEncodings:
    @each(("body", "content", "error"), [
        ("UEFSVC1PTkU=\nUEFSVC1UV08h", b"PART-ONEPART-TWO!", "The base64 of a part has padding within"),
        ("QUFB\nQUFBQQ==\nQkJCQg==\nQ0M=\n", b"AAAAAAABBBBCC", "The base64 of a part has padding within"),
        ("UEFSVC1PTkU= UEFSVC1UV08h", b"PART-ONEPART-TWO!", "The base64 of a part has padding within"),
        ("QQ==QQ==QQ", b"AAA", "The base64 of a part has padding within"),
        ("QQ=QQ", b"AA", "The base64 of a part has padding within"),
        ("QUFB====", b"AAA", ""), ("QUE", b"AA", ""), ("QQ", b"A", ""), ("Q!U-F_B", b"AAA", ""), ("=QUFB", b"AAA", ""),
        ("QUFBQ", b"AAA", "A part is not valid base64"),
        ("QUE=\n-- \nThe footer of a list", b"AA", "Text behind the base64 of a part was left out"),
    ])  # fmt: skip
    def test_base64_is_read_group_by_group(self, body, content, error):
        head = f"{FROM}Content-Type: application/pdf\nContent-Transfer-Encoding: base64\n\n"
        reading = read(head + body)
        (entry,) = reading.attachments
        assert (entry["size"], entry["sha256"]) == (len(content), digest(content))
        assert reading.errors == [error] * bool(error)

    @each(("name", "body"), [
        *((name, "SGkg4oKs") for name in ("base64", "BASE64", "base-64", "base 64", '"base64"', "base64 (x)",
        "base64;", " base64,")),
        *((name, "Hi=20=E2=82=AC") for name in ("quoted-printable", "quoted printable", "QuotedPrintable",
        "quoted_printable")),
        *((name, "Hi €") for name in ("8bit", "8 bit", "8-bit", "7bit", "binary", "8bits", "x-unknown", "", "utf-8")),
    ])  # fmt: skip
    def test_a_name_has_many_spellings(self, name, body):
        reading = read(f"{FROM}Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: {name}\n\n{body}")
        assert reading.text == "Hi €"

    @each(("body", "text"), [
        ("a=20b", "a b"), ("a=\nb", "ab"), ("a= \t\nb", "ab"), ("a=zz=", "a=zz"), ("a=c3=a4", "aä"),
        ("a == b", "a =3D b"),
        ("a=", "a"), ("a=3", "a=3"),
    ])  # fmt: skip
    def test_quoted_printable_is_read_leniently(self, body, text):
        reading = read(
            f"{FROM}Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: quoted-printable\n\n{body}"
        )
        assert reading.text.replace(" = ", " == ") == text.replace(" =3D ", " == ")

    def test_an_attached_message_may_have_base64(self):
        inner = b"Subject: Inner\r\n\r\nHello"
        body = base64.b64encode(inner).decode()
        (entry,) = with_type("message/rfc822\nContent-Transfer-Encoding: base64", body).attachments
        assert (entry["contentType"], entry["sha256"]) == ("message/rfc822", digest(inner))

    def test_files_within_a_text_stay_text(self):
        body = "Hi\n\nbegin 644 a.txt\n#0V%T\n`\nend\n"
        assert with_type("text/plain", body).text == body


class TestHeader:
    @each(("start", "is_certain"), [
        ("", True), ("\ufeff", False), (" ", False), ("\t ", False), ("\n", False), ("\n\n", False), (" \n", False),
        ("\ufeff\n", False), ("From ada@example.com Fri Nov 20 09:12:29 2026\n", True),
        (">From ada@example.com Fri Nov 20 09:12:29 2026\n", True), ("garbage\n", True), ("Received: by x\n y\n", True),
    ])  # fmt: skip
    def test_the_first_field_is_read_behind_other_characters(self, start, is_certain):
        reading = read(f"{start}{FROM}\nHello")
        assert (reading.sender, reading.subject, reading.text) == ("ada@example.com", "Hi", "Hello")
        # Other programs read no From there.
        assert (AMBIGUOUS_SENDER not in reading.errors, bool(reading.senders)) == (is_certain, is_certain)
        assert (reading.errors == []) == (start in {"", "Received: by x\n y\n"})

    @each(("field", "subject"), [
        ("Ä".encode(), "Ä"), ("Ä".encode("latin-1"), "Ä"), ("ÄÖÜäöüß €".encode()[:-1], "ÄÖÜäöüß \ufffd"),
        ("ÄÖ".encode("latin-1"), "ÄÖ"), ("caf\u00e9".encode("latin-1"), "caf\u00e9"),
    ])  # fmt: skip
    def test_each_line_has_its_charset(self, field, subject):
        source = b"X: \xe4\r\nSubject: " + field + b"\r\n\r\nHi"
        assert read_received(source, envelope_from="", budget=ProcessorBudget()).subject == subject

    def test_another_repaired_field_leaves_the_sender_certain(self):
        assert read(f" Received: by x\n{FROM}\nHello").senders

    @each(("body", "text"), [
        ("\nHello", "Hello"), ("Hello\nyou", "Hello\nyou"), ("Hello,\n\nyou", "Hello,\n\nyou"), ("", ""), ("\n", ""),
        ("Hello\n  indented\n\nyou", "Hello\n  indented\n\nyou"), ("name=a.pdf\n\nHello", "Hello"),
        ("x" * 41 + "\n\nHello", "Hello"),
    ])  # fmt: skip
    def test_the_empty_line_behind_the_header_may_be_missing(self, body, text):
        reading = read(FROM + body)
        assert (reading.subject, reading.text) == ("Hi", text)

    def test_a_line_between_fields_is_no_field(self):
        reading = read(f"X: 1\nno field\n{FROM}\nHello")
        assert (reading.subject, reading.text) == ("Hi", "Hello")
        assert reading.errors == ["A header line is not a field: 'no field'"]

    def test_a_message_may_begin_with_its_body(self):
        assert read("\nNote: this is text").text == "Note: this is text"
        assert read("\n\nHello\n").text == "\nHello\n"

    def test_lines_may_end_with_cr(self):
        source = FROM.replace("\n", "\r").encode()
        for body in (b"\rHello\ryou", b"\rHello\r\nyou", b"\rHello\nyou"):
            reading = read_received(source + body, envelope_from="", budget=ProcessorBudget())
            assert (reading.subject, reading.text) == ("Hi", "Hello\nyou")

    def test_a_part_without_a_header_is_text(self):
        reading = with_type("multipart/mixed; boundary=b", "--b\nHello\n\nyou\n--b\n\nmore\n--b--")
        assert reading.text == "Hello\n\nyou\nmore"

    def test_delimiters_may_follow_the_header_at_once(self):
        reading = read(f"{FROM}Content-Type: multipart/mixed; boundary=b\n--b\n\nHello\n--b--")
        assert reading.text == "Hello"


class TestMultiparts:
    @each("end", ["--b--\n", "--b--", "", "--b", "--b\n", "--b-- \n", "--b--\n--b--\n"])
    def test_the_last_delimiter_has_any_form(self, end):
        parts = "--b\n\nHello\n--b\nContent-Type: a/b\n\nx\n"
        reading = with_type("multipart/mixed; boundary=b", parts + end)
        assert reading.text == "Hello"
        assert reading.attachments[0]["size"] == 1 + 2 * (not end)

    def test_the_inner_of_two_equal_boundaries_counts(self):
        inner = f"Content-Type: multipart/alternative; boundary=b\n\n{ALTERNATIVE.replace('b1', 'b')}"
        reading = with_type("multipart/mixed; boundary=b", f"--b\n{inner}--b\nContent-Type: a/b\n\nx\n--b--\n")
        assert (reading.text, reading.html) == ("plain", "<p>html</p>")
        assert [one["contentType"] for one in reading.attachments] == ["a/b"]
        assert reading.errors == ["A multipart has the boundary of the one that contains it"]

    def test_a_wrong_boundary_is_repaired_at_each_level(self):
        inner = f"--o\nContent-Type: multipart/alternative; boundary=wrong\n\n{ALTERNATIVE}\n--o--"
        reading = with_type("multipart/mixed", inner)
        assert (reading.text, reading.html, reading.attachments) == ("plain", "<p>html</p>", [])
        assert "The boundary of a multipart was found in its body" in reading.errors


def mixed(*parts: str, kind: str = "multipart/mixed") -> str:
    name = f"b{hash(parts) % 10**9}"
    body = "".join(f"--{name}\n{part}\n" for part in parts)
    return f"Content-Type: {kind}; boundary={name}\n\n{body}--{name}--"


def plain(text: str, fields: str = "") -> str:
    return f"Content-Type: text/plain; charset=utf-8\n{fields}\n{text}"


def page(text: str, fields: str = "") -> str:
    return f"Content-Type: text/html; charset=utf-8\n{fields}\n{text}"


IMAGE = "Content-Type: image/png; name=a.png\nContent-Disposition: inline\nContent-ID: <a>\n\nx"
FOOTER = plain("-- \nlist & footer")
SHOWN_FOOTER = "<div>-- <br>\nlist &amp; footer</div>"


class TestTexts:
    @each(("source", "text", "html", "is_generated"), [
        (mixed(plain("One\n"), IMAGE, plain("Two\n")), "One\nTwo\n", "", False),
        (mixed(plain("One"), IMAGE, plain("Two")), "One\nTwo", "", False),
        (mixed(page("<p>One"), IMAGE, page("<p>Two")), "One\n\nTwo\n", "<p>One<br>\n<p>Two", True),
        (mixed(page("<p>One"), FOOTER), "One\n-- \nlist & footer", f"<p>One<br>\n{SHOWN_FOOTER}", True),
        (mixed(plain("One"), page("<p>Two")), "One\nTwo\n", "<div>One</div><br>\n<p>Two", True),
        (mixed(mixed(plain("One"), page("<p>One"), kind="multipart/alternative"), FOOTER),
         "One\n-- \nlist & footer", f"<p>One<br>\n{SHOWN_FOOTER}", False),
        (mixed(plain("One Two"), mixed(page("<p>One"), IMAGE, page("<p>Two")), kind="multipart/alternative"),
         "One Two", "<p>One<br>\n<p>Two", False),
        (mixed(plain("One"), mixed(page("<p>One"), FOOTER), kind="multipart/alternative"),
         "One\n-- \nlist & footer", f"<p>One<br>\n{SHOWN_FOOTER}", False),
        (mixed(plain("One"), mixed(page("<p>One"), IMAGE, kind="multipart/related"), kind="multipart/alternative"),
         "One", "<p>One", False),
        (mixed(page("<p>One"), page("<p>Frame", "Content-ID: <f>\n"), kind="multipart/related"), "One\n", "<p>One",
        True),
        (mixed(plain(" \n"), page("<p>One"), kind="multipart/alternative"), "One\n", "<p>One", True),
        (mixed(plain("One"), page("\n"), kind="multipart/alternative"), "One", "", False),
        (mixed(page("<p>One"), page("<p>Two"), kind="multipart/alternative"), "One\n\nTwo\n", "<p>One<br>\n<p>Two",
        True),
        (mixed(plain("One"), plain("Two", "Content-Disposition: attachment\n")), "One", "", False),
        (mixed(plain("One"), plain("Two", "Content-Disposition: inline; filename=a.txt\n")), "One", "", False),
        (plain("One", "Content-Disposition: inline; filename=a.txt\n"), "One", "", False),
        (mixed(IMAGE, plain("One", "Content-Disposition: inline; filename=a.txt\n")), "One", "", False),
        (mixed(plain("One", "Content-Disposition: attachment; filename=a.txt\n")), "", "", False),
        (mixed(plain("One", "Content-Disposition: inline; filename=a.txt\n"), page("<p>One"),
        kind="multipart/alternative"),
         "One", "<p>One", False),
        (mixed(IMAGE), "", "", False),
        (mixed(plain("One"), "Content-Type: message/rfc822\n\nSubject: Inner\n\nTwo", plain("Three")), "One\nThree",
        "", False),
    ])  # fmt: skip
    def test_the_texts_have_everything_that_a_person_reads(self, source, text, html, is_generated):
        reading = read(FROM + source)
        # Two line ends stand between two paragraphs of HTML.
        assert reading.text.replace("\n\n", "\n") == text.replace("\n\n", "\n")
        assert (reading.html, reading.text_generated) == (html, is_generated)
        assert reading.errors == []

    def test_the_texts_of_many_parts_are_cut_together(self):
        megabytes = [plain("é" * 1024 * 1024) for _ in range(3)]
        reading = read(FROM + mixed(*megabytes, page("<p>Hi")))
        limit = 5 * 1024 * 1024
        assert limit - 2 < len(reading.text.encode()) <= limit
        assert limit - 2 < len(reading.html.encode()) <= limit
        assert reading.truncated == ["text", "html"]


class TestAddresses:
    @each(("value", "emails", "error"), [
        ("ada@example.com", ["ada@example.com"], ""), ("Ada ada@example.com", ["ada@example.com"], ""),
        ("Ada <ada@example.com", ["ada@example.com"], ""), ("ada@example.com>", ["ada@example.com"], ""),
        ("<<ada@example.com>>", ["ada@example.com"], ""), ("mailto:ada@example.com", ["ada@example.com"], ""),
        ("<mailto:ada@example.com?subject=x>", ["ada@example.com"], ""), ("'ada@example.com'", ["ada@example.com"], ""),
        ("'ada@example.com' <ada@example.com>", ["ada@example.com"], ""),
        ("[ada@example.com]", ["ada@example.com"], ""),
        ("<ada @ example.com >", ["ada@example.com"], ""), ("ada@@example.com", ["ada@example.com"], ""),
        ('"a@b.example" <a@b.example>', ["a@b.example"], ""),
        ("a@b.example; c@d.example", ["a@b.example", "c@d.example"], ""),
        ("Team: a@b.example, c@d.example;", ["a@b.example", "c@d.example"], ""), ("undisclosed-recipients:;", [], ""),
        ("=?utf-8?q?Ad=C3=A4?= <zoë@bücher.example>", ["zoë@bücher.example"], ""),
        ("a@b.example, <ada l@example.com>", ["a@b.example"], "left out"), ("<ada@exam ple.com>", [], "left out"),
        ("a@b.example@c.example", [], "left out"), ("Ada", [], "left out"),
        ("Ada, a@b.example", ["a@b.example"], "left out"),
        ('"Ada <ada@example.com>', [], "left out"), ("<>", [], "left out"), ("ada@'", [], "left out"),
        ("@", [], "left out"),
        ("=?utf-8?q?Ada_=3Cada=40example=2Ecom=3E?=", [], "left out"),
    ])  # fmt: skip
    def test_a_malformed_address_is_cleaned_or_left_out(self, value, emails, error):
        reading = read(f"From: b@c.example\nTo: {value}\nReply-To: {value}\n\nHi")
        assert [one.email for one in reading.mailboxes["to"]] == emails
        left_out = ["An address in To was left out", "An address in Reply-To was left out"]
        assert reading.errors == left_out * bool(error)

    @each("value", ["'ada@example.com'", "<ada l@example.com>", "ada@@example.com", "a@b.example@c.example"])
    def test_a_malformed_sender_is_ambiguous(self, value):
        reading = read(f"From: {value}\n\nHi")
        assert (reading.senders, reading.errors) == ([], [AMBIGUOUS_SENDER])


def test_the_number_of_entries_is_bounded():
    lines = "".join(f"no field {number}\n" for number in range(30))
    assert len(read(f"X: 1\n{lines}{FROM}\nHi").errors) == 20
