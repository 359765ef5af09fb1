"""Messages to drafts: texts, files and addresses as given, and a refusal instead of a guess."""

import time
from email import policy
from email.message import EmailMessage

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.delivery.message.compose import Placement
from core.lib.email_addresses import Address
from interfaces.submission.drafts import read_email
from interfaces.submission.errors import ConversionNotAllowed, InvalidHeader, MalformedMessage, MessageTooLarge, Refused
from tests.rows import each

ADA, EVE = Address("", "ada@example.com"), Address("", "eve@example.com")
HEAD = b"From: Alice <hi@alice.example>\r\nTo: ada@example.com\r\nSubject: Hello\r\n"


def draft(source: bytes, *recipients: Address):
    return read_email(source, recipients=recipients or (ADA,)).draft


def built(**headers) -> EmailMessage:
    message = EmailMessage(policy=policy.SMTP)
    given_headers = {"From": "Alice <hi@alice.example>", "To": "ada@example.com", "Subject": "Hello", **headers}
    for name, value in given_headers.items():
        message[name.replace("_", "-")] = value
    return message


def with_header(line: str) -> bytes:
    return HEAD + line.encode() + b"\r\n\r\nHi\r\n"


def with_type(line: str, body: bytes, encoding: str = "8bit") -> bytes:
    return HEAD + f"Content-Type: {line}\r\nContent-Transfer-Encoding: {encoding}\r\n\r\n".encode() + body


def reply_code(source: bytes) -> str:
    try:
        draft(source)
    except Refused as refusal:
        return str(refusal)[:3]
    return "250"


# 255 characters with 22 more.
LONG_TYPE = f'application/pdf; a="{"x" * 100}"; b="{"x" * 100}"; c="{{}}"'
# Text that a program can send: CRLF line ends only, no NUL and no surrogates.
TEXTS = st.text(st.characters(blacklist_categories=("Cs", "Cc")) | st.just("\n"), max_size=300)
FILES = st.lists(st.binary(max_size=300), max_size=4)


class TestTexts:
    @given(text=TEXTS, html=TEXTS, cte=st.sampled_from(["quoted-printable", "base64", "8bit"]))
    def test_text_and_html_are_read_as_written(self, text, html, cte):
        message = built()
        message.set_content(text, cte=cte)
        message.add_alternative(html, subtype="html", cte=cte)
        plain, formatted = message.iter_parts()
        read = draft(message.as_bytes())
        assert read.text == plain.get_content().replace("\r\n", "\n")
        assert read.html == formatted.get_content().replace("\r\n", "\n")

    @each(("charset", "text"), [
        ("iso-8859-1", "Grüße"), ("windows-1252", "“€”"), ("iso-2022-jp", "日本語"), ("shift_jis", "①髙"),
        ("gb2312", "镕中文"), ("koi8-r", "Привет"), ("euc-kr", "한국어"), ("big5", "繁體"), ("utf-16", "Grüße"),
        ("iso-8859-8-i", "שלום"), ("iso-8859-1", "“€”"), ("x-sjis", "テスト"), ("windows-874", "สวัสดี"),
        ("utf-7", "aä"),
        ("us-ascii", "日本語"), ("x-unknown", "日本語"),
    ])  # fmt: skip
    def test_a_text_is_decoded_by_its_charset(self, charset, text):
        codecs = {
            "shift_jis": "cp932", "gb2312": "gb18030", "iso-8859-8-i": "iso-8859-8", "x-sjis": "cp932",
            "iso-8859-1": "cp1252",
            "windows-874": "cp874", "us-ascii": "iso-2022-jp", "x-unknown": "iso-2022-jp",
        }  # fmt: skip
        body = text.encode(codecs.get(charset, charset))
        assert draft(with_type(f"text/plain; charset={charset}", body)).text == text

    @each(("line", "subject"), [
        ("=?utf-8?Q?Best=C3=A4tigung Ihrer Bestellung?=", "Bestätigung Ihrer Bestellung"),
        ("\x1b$B$*@$OC\x1b(B", "お世話"),
        ("=?UTF-8?Q?Caf=C3=A9_this_week?_[ask]?=", "Café this week? [ask]"), ("=?utf-8?X?a?=", "=?utf-8?X?a?="),
    ])  # fmt: skip
    def test_a_word_that_mail_programs_decode_is_decoded(self, line, subject):
        source = f"From: {line} <a@alice.example>\r\nSubject: {line}\r\nX-A: {line}\r\n\r\n".encode()
        read = draft(source)
        assert (read.sender.name, read.subject, read.headers["X-A"]) == (subject, subject, subject)

    @each("charset", ["", "us-ascii", "unknown-8bit", "x-mac"])
    def test_utf_8_under_another_name_is_utf_8(self, charset):
        assert draft(with_type(f'text/plain; charset="{charset}"', "Grüße".encode())).text == "Grüße"

    @each(("line", "body"), [
        ("text/plain; charset=utf-8", b"\xff"),
        ("text/plain; charset=us-ascii", b"\xfc"),
        ("text/plain; charset=utf-7", b"Hi +AG-"),
        ("text/plain; charset=euc-jp", b"\xa4\xa2\xff"),
        ("text/plain; charset=utf-8", b"a\0b"),
    ])  # fmt: skip
    def test_a_text_that_cannot_be_decoded_is_refused(self, line, body):
        with pytest.raises(MalformedMessage):
            draft(with_type(line, body))

    def test_a_message_without_a_body_or_subject_is_an_email_without_them(self):
        read = draft(b"From: hi@alice.example\r\n\r\n")
        assert (read.subject, read.text, read.html, read.to) == ("", "", "", ())

    def test_texts_of_several_parts_are_one_text(self):
        message = built()
        message.set_content("<p>Hi", subtype="html")
        message.make_mixed()
        footer = EmailMessage()
        footer.set_content("To unsubscribe, write to …")
        message.attach(footer)
        read = draft(message.as_bytes())
        assert (read.text, read.files) == ("Hi\nTo unsubscribe, write to …\n", ())
        assert read.html == "<p>Hi\n<br>\n<div>To unsubscribe, write to …</div>"

    def test_the_texts_around_a_file_are_one_text(self):
        part = b"--b\r\n\r\n%b\r\n"
        file = b"--b\r\nContent-Type: image/png; name=a.png\r\n\r\nx\r\n"
        read = draft(with_type("multipart/mixed; boundary=b", part % b"One" + file + part % b"Two" + b"--b--"))
        assert (read.text, read.html, [file.filename for file in read.files]) == ("One\nTwo", "", ["a.png"])

    def test_the_limit_of_the_api_is_that_of_all_texts_together(self):
        part = b"--b\r\n\r\n" + b"x" * 600_000 + b"\r\n"
        with pytest.raises(MessageTooLarge):
            draft(with_type("multipart/mixed; boundary=b", part + part + b"--b--"))

    def test_a_large_text_is_refused_at_the_limit_of_the_api(self):
        limit = 1024 * 1024
        assert len(draft(with_type("text/plain", b"x" * limit)).text) == limit
        with pytest.raises(MessageTooLarge):
            draft(with_type("text/plain", b"x" * (limit + 1)))


class TestFiles:
    @given(files=FILES, text=TEXTS)
    def test_attachments_keep_their_bytes(self, files, text):
        message = built()
        message.set_content(text)
        for number, data in enumerate(files):
            message.add_attachment(data, maintype="application", subtype="pdf", filename=f"ä{number}.pdf")
        read = draft(message.as_bytes())
        assert [file.data for file in read.files] == files
        assert [file.filename for file in read.files] == [f"ä{number}.pdf" for number in range(len(files))]

    def test_the_parts_of_a_digest_are_attached_messages(self):
        inner = b"From: x@y.example\r\nSubject: one\r\n\r\nHello"
        source = with_type("multipart/digest; boundary=b", b"--b\r\n\r\n" + inner + b"\r\n--b--\r\n")
        read = draft(source)
        assert read.text == ""
        assert [(file.filename, file.content_type, file.data) for file in read.files] == [
            ("message.eml", "message/rfc822", inner)
        ]

    def test_an_inline_image_needs_a_reference_or_a_related_part(self):
        message = built()
        message.set_content("Hi")
        message.add_alternative('<img src="cid:logo@x">', subtype="html")
        message.get_payload()[1].add_related(b"png", "image", "png", cid="<logo@x>")
        message.add_attachment(b"pdf", maintype="application", subtype="pdf", filename="a.pdf", cid="<other@x>")
        read = draft(message.as_bytes())
        assert [(file.content_type, file.content_id) for file in read.files] == [
            ("image/png", "logo@x"),
            ("application/pdf", None),
        ]

    def test_an_invitation_stays_beside_the_text(self):
        message = built()
        message.set_content("Meet")
        message.add_alternative(b"BEGIN:VCALENDAR", "text", "calendar", params={"method": "REQUEST"})
        (file,) = draft(message.as_bytes()).files
        assert (file.placement, file.data) == (Placement.ALTERNATIVE, b"BEGIN:VCALENDAR")
        assert file.content_type == 'text/calendar; method="REQUEST"'

    @each(("given", "content_type"), [
        (LONG_TYPE.format("x" * 22), LONG_TYPE.format("x" * 22)),
        (LONG_TYPE.format("x" * 23), "application/pdf"),
        ("app<lication/pdf", "application/pdf"),
    ])  # fmt: skip
    def test_parameters_of_a_file_that_are_too_long_and_a_malformed_type_are_replaced(self, given, content_type):
        fields = f"Content-Type: {given}\r\nContent-Disposition: attachment; filename=a.pdf"
        parts = f"--b\r\n\r\nHi\r\n--b\r\n{fields}\r\n\r\nx\r\n--b--\r\n".encode()
        (file,) = draft(with_type("multipart/mixed; boundary=b", parts)).files
        assert file.content_type == content_type

    @each(("given", "name"), [
        ("../../etc/passwd", "passwd"),
        ("C:\\a\\b.txt", "b.txt"),
        ("...", "file-1.bin"),
        ("a\u202egpj.exe", "agpj.exe"),
    ])  # fmt: skip
    def test_a_file_name_has_no_path_and_no_controls(self, given, name):
        message = built()
        message.add_attachment(b"x", maintype="application", subtype="octet-stream", filename=given)
        assert draft(message.as_bytes()).files[0].filename == name

    def test_more_files_than_the_api_allows_are_refused(self):
        message = built()
        for number in range(11):
            message.add_attachment(b"x", maintype="a", subtype="b", filename=f"{number}")
        with pytest.raises(MessageTooLarge):
            draft(message.as_bytes())

    def test_files_above_ten_mebibytes_are_refused(self):
        body = b"--b\r\nContent-Type: a/b\r\nContent-Transfer-Encoding: binary\r\n\r\n%s\r\n--b--\r\n"
        assert draft(with_type("multipart/mixed; boundary=b", body % bytes(10_485_760))).files
        with pytest.raises(MessageTooLarge):
            draft(with_type("multipart/mixed; boundary=b", body % bytes(10_485_761)))


class TestStructure:
    @each(("line", "body"), [
        ("multipart/mixed; boundary=b", b"x"),
        ("text/plain; charset=utf-8\r\nContent-Type: text/html", b""), ("multipart/mixed", b"--b\r\n\r\nHi\r\n--b--"),
        ("multipart/mixed; boundary=c", b"--b\r\nContent-Type: text/plain\r\n\r\nHi\r\n--b--"), ("nonsense", b"Hi"),
        ("multipart/mixed; boundary=b",
        b"--b\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\nHi\r\n--b--"),
    ])  # fmt: skip
    def test_a_broken_structure_is_refused(self, line, body):
        with pytest.raises(MalformedMessage):
            draft(with_type(line, body))

    @each(
        "line",
        ["text/html charset=utf-8", "text/html (html); charset=utf-8", "text/html, charset=utf-8", "text / html"],
    )
    def test_a_type_that_all_programs_read_alike_is_accepted(self, line):
        read = draft(with_type(line, "<p>Grüße".encode()))
        assert (read.html, read.text, read.files) == ("<p>Grüße", "", ())

    @each(("body", "text"), [
        (b"UEFSVC1PTkU=\r\nUEFSVC1UV08h", "PART-ONEPART-TWO!"), (b"SGk=", "Hi"), (b"SGk", "Hi"), (b"SGkhS", None),
        (b"SGk=\r\n-- \r\nThe footer of a list", None),
    ])  # fmt: skip
    def test_base64_is_read_to_its_end_or_refused(self, body, text):
        source = with_type("text/plain", body, "base64")
        if text is None:
            with pytest.raises(MalformedMessage, match="base64"):
                draft(source)
        else:
            assert draft(source).text == text

    @each("front", [b"\xef\xbb\xbf", b" ", b"\r\n", b"From ada@example.com Fri Nov 20 09:12:29 2026\r\n"])
    def test_characters_in_front_of_the_header_are_refused(self, front):
        with pytest.raises(MalformedMessage):
            draft(front + HEAD + b"\r\nHi")

    def test_nesting_is_bounded(self):
        source = HEAD
        for level in range(12):
            source += b"Content-Type: multipart/mixed; boundary=x%d\r\n\r\n--x%d\r\n" % (level, level)
        with pytest.raises(MalformedMessage, match="nested"):
            draft(source)

    @each("source", [b"", b"\r\n\r\nHi", b"no field\r\n\r\nHi", HEAD + b"x: y\r\n" * 500, b"a:" * 50_000])
    def test_a_broken_header_is_refused(self, source):
        with pytest.raises(Refused):
            draft(source)

    def test_an_unknown_transfer_encoding_is_refused(self):
        with pytest.raises(MalformedMessage, match="x-uuencode"):
            draft(with_type("text/plain", b"begin", "x-uuencode"))

    @given(st.binary(max_size=2_000))
    def test_any_bytes_are_read_or_refused(self, data):
        for source in (data, HEAD + data, with_type("multipart/mixed; boundary=b", b"--b\r\n" + data)):
            assert reply_code(source) in {"250", "550", "552", "554"}


class TestAddresses:
    def test_the_envelope_decides_who_receives_the_message(self):
        read = draft(with_header("Cc: Bob <bob@example.com>\r\nBcc: secret@example.com"), ADA, EVE)
        assert [address.spec for address in (*read.to, *read.cc)] == ["ada@example.com", "bob@example.com"]
        assert read.bcc == (EVE,)
        assert list(read.field_addresses()) == [("to[0]", "ada@example.com"), ("bcc[0]", "eve@example.com")]
        assert "bcc" not in {name.lower() for name in read.headers}

    @each("to", [b"undisclosed-recipients:;", b"unlisted-recipients:; (no To-header on input)"])
    def test_a_group_without_members_shows_nobody(self, to):
        read = draft(b"From: a@alice.example\r\nTo: %s\r\n\r\n" % to)
        assert (read.to, read.bcc) == ((), (ADA,))

    @each("to", [b"<undisclosed-recipients:;>", b"Undisclosed recipients: ;", b'"Nobody": (none);'])
    def test_a_group_without_members_has_several_spellings(self, to):
        assert draft(b"From: a@alice.example\r\nTo: %s\r\n\r\n" % to).to == ()

    @each(("text", "name"), [
        ("a@alice.example <a@alice.example>", "a@alice.example"),
        ("[Demo] Alerts <a@alice.example>", "[Demo] Alerts"),
        ("Demo @ Home <a@alice.example>", "Demo @ Home"), ("Demo: Alerts <a@alice.example>", "Demo: Alerts"),
        ("Demo, Inc <a@alice.example>", "Demo, Inc"), ("Demo; Inc <a@alice.example>;", "Demo; Inc"),
        ("=?utf-8?q?Demo=2C_=40?= Inc <a@alice.example>", "Demo, @ Inc"), ('5" Disk <a@alice.example>', '5" Disk'),
        ("a@alice.example (Demo (Inc), EU)", "Demo (Inc), EU"), ("Demo <a@alice.example> (EU)", "Demo"),
        ("Demo (EU) <a@alice.example>", "Demo (EU)"), ("Demo <@b.example,@c.example:a@alice.example>", "Demo"),
        ("a . (b) c @ alice . example,", "b"), ('"a"@alice.example', ""),
    ])  # fmt: skip
    def test_a_name_that_should_have_quotes_is_read(self, text, name):
        read = draft(f"From: {text}\r\n\r\n".encode()).sender
        assert (read.name, read.domain) == (name, "alice.example")

    @each(("to", "specs"), [
        ("b@example.com; Ada <ada@example.com>", "b ada"), (",b@example.com,, ;", "b"),
        ("Lovelace, Ada <ada@example.com>, Hopper; Grace <grace@example.com>", "ada grace"),
        ("Team: Ada <ada@example.com>, b@example.com; , Empty:;", "ada b"),
        ("Team: ada@example.com; Grace <grace@example.com>", None), ("root, Ada <ada@example.com>, root", None),
        ('b@example.com (B, L), Ada "A" L <ada@example.com>', "b ada"), ("<ada@example.com>, <>", None),
        ("ada@example.com Ada", None), ("b@example.com grace@example.com", None),
    ])  # fmt: skip
    def test_a_list_is_separated_by_commas_and_semicolons(self, to, specs):
        source = f"From: a@alice.example\r\nTo: {to}\r\n\r\n".encode()
        if specs is None:
            with pytest.raises(InvalidHeader, match=r"550 5\.6\.0 To: "):
                draft(source)
        else:
            assert [address.spec for address in draft(source).to] == [f"{one}@example.com" for one in specs.split()]

    @each(("to", "reason"), [
        ('"ada l"@example.com', "A quoted part before the @-sign is not supported"),
        ("=?utf-8?q?A=07?= <ada@example.com>", "must not contain control characters"),
        ("\u202eada <ada@example.com> (x)", "must not contain control characters"),
    ])  # fmt: skip
    def test_an_address_that_the_api_refuses_has_its_reason(self, to, reason):
        with pytest.raises(InvalidHeader, match=f"To: .*{reason}"):
            draft(f"From: a@alice.example\r\nTo: {to}\r\n\r\n".encode())

    def test_names_are_decoded(self):
        read = draft(b'From: =?utf-8?q?Z=C3=BC_=22x=22?= <a@alice.example>\r\nTo: "B, C" <ada@example.com>\r\n\r\n')
        assert (read.sender.name, read.to[0].name) == ('Zü "x"', "B, C")

    @each("line", [
        "", "From: a@alice.example, b@alice.example", "From: a@alice.example\r\nFrom: b@alice.example", "From: x:;",
        "From: nobody", "From: a@alice.example\r\nTo: root", "From: " + "(" * 5_000, "From: " + ":" * 5_000,
    ])  # fmt: skip
    def test_an_address_field_that_is_not_one_is_refused_by_name(self, line):
        with pytest.raises(Refused, match=r"From|To|nested|header"):
            draft(line.encode() + b"\r\n\r\n")

    def test_several_reply_addresses_are_kept(self):
        read = draft(with_header("Reply-To: a@example.com, B <b@example.com>"))
        assert [address.spec for address in read.reply_to] == ["a@example.com", "b@example.com"]


class TestHeaders:
    def test_custom_headers_are_kept_and_those_of_the_transfer_dropped(self):
        lines = ["X-Shop: 1", "References: <a@b>", "Received: by x", "X-Received: by y", "DKIM-Signature: v=1",
                 "Message-ID: <1@app>", "List-Unsubscribe: <https://x>", "MIME-Version: 1.0",
                 "Sender: x@y.example"]  # fmt: skip
        read = draft(with_header("\r\n".join(lines)))
        assert read.headers == {"X-Shop": "1", "References": "<a@b>", "X-Original-Message-ID": "<1@app>"}

    @each("name", ["X-Virus-Scanned", "X-Spam-Status", "X-Original-To", "Comments", "Keywords", "X-A"])
    def test_the_first_of_repeated_header_fields_is_kept(self, name):
        assert draft(with_header(f"{name}: 1\r\n{name.lower()}: 2\r\n{name}: 1")).headers == {name: "1"}

    def test_a_field_that_occurs_once_in_a_message_may_be_repeated_unchanged(self):
        assert draft(with_header("References: <a>\r\nreferences: <a>")).headers == {"References": "<a>"}
        with pytest.raises(InvalidHeader, match="References: This header is given more than once"):
            draft(with_header("References: <a>\r\nReferences: <b>"))

    def test_equal_fields_about_the_content_are_one(self):
        fields = "text/plain;\r\n charset=utf-8\r\nContent-Type: text/plain;  charset=utf-8\r\nContent-Length: 2"
        assert draft(with_type(f"{fields}\r\nContent-Length: 3", "é".encode())).text == "é"
        with pytest.raises(MalformedMessage, match="Content-Type more than once, with different values"):
            draft(with_type(f"{fields}\r\nContent-Type: text/html", b"Hi"))

    @each("line", ["References: <a>\r\nreferences: <b>", "X-A: " + "x" * 999, "X_A: 1",
         "X-SES-CONFIGURATION-SET: x", "X-Mailgun-Tag: y", "X-Bell: \x07", "Subject: \x07",
         "Subject: " + "x" * 999])  # fmt: skip
    def test_a_header_that_the_api_refuses_is_refused_by_name(self, line):
        name = line.partition(":")[0]
        source = with_header(line) if name != "Subject" else b"From: a@alice.example\r\n" + line.encode() + b"\r\n\r\n"
        with pytest.raises(InvalidHeader, match=f"(?i){name}"):
            draft(source)

    def test_a_second_subject_is_refused(self):
        with pytest.raises(MalformedMessage, match=r"554 5\.6\.0 A message must have only one Subject"):
            draft(with_header("subject: Hello"))

    def test_a_folded_header_is_one_line(self):
        assert draft(with_header("X-A: one\r\n\ttwo")).headers["X-A"] == "one two"


class TestSignedMessages:
    BODY = b"--b\r\nContent-Type: text/plain\r\n\r\nSigned \r\n--b\r\nContent-Type: a/b\r\n\r\nsig\r\n--b--"

    @each("kind", ["multipart/signed", "multipart/encrypted"])
    def test_the_body_is_one_file_with_its_bytes(self, kind):
        read = draft(with_type(f'{kind}; protocol="a/b"; boundary=b', self.BODY + b"\r\n", "7bit"))
        (file,) = read.files
        assert (file.placement, file.data, read.text, read.html) == (Placement.WHOLE, self.BODY, "", "")
        assert file.content_type == f'{kind}; protocol="a/b"; boundary=b'

    def test_an_encrypted_smime_message_is_one_file(self):
        read = draft(with_type("application/pkcs7-mime; smime-type=enveloped-data", b"AAEC", "base64"))
        assert (read.files[0].placement, read.files[0].data) == (Placement.WHOLE, b"\0\1\2")

    @each("body", [BODY.replace(b"Signed", "ü".encode()), BODY.replace(b"Signed", b"x" * 1_000)])
    def test_a_body_that_servers_would_change_is_refused(self, body):
        with pytest.raises(ConversionNotAllowed):
            draft(with_type("multipart/signed; boundary=b", body))

    @each("control", ["\x00", "\x01", "\x1b", "\x7f"])
    def test_control_characters_in_the_content_type_are_refused(self, control):
        with pytest.raises(ConversionNotAllowed, match=r"554 5\.6\.1 The Content-Type must be printable"):
            draft(with_type(f'multipart/signed; micalg="a{control}b"; boundary=b', self.BODY, "7bit"))

    def test_a_body_with_nul_is_refused(self):
        with pytest.raises(ConversionNotAllowed):
            draft(with_type("multipart/signed; boundary=b", self.BODY.replace(b"Signed", b"\0"), "7bit"))

    def test_the_lines_of_a_large_body_are_checked_in_linear_time(self):
        body = (b"x" * 998 + b"\r\n") * 10_000
        started = time.thread_time()
        assert draft(with_type("multipart/signed; boundary=b", body, "7bit")).files[0].data == body.removesuffix(
            b"\r\n"
        )
        assert time.thread_time() - started < 0.5

    @each(("length", "is_refused"), [(998, False), (999, True)])
    def test_a_line_of_any_place_may_have_998_characters(self, length, is_refused):
        line = b"x" * length
        for body in (line + b"\r\nx", b"x\r\n" + line + b"\r\nx"):
            source = with_type("multipart/signed; boundary=b", body, "7bit")
            assert (reply_code(source) == "554") == is_refused

    def test_a_signed_part_of_another_message_is_refused(self):
        body = b"--o\r\nContent-Type: multipart/signed; boundary=b\r\n\r\n" + self.BODY + b"\r\n--o--"
        with pytest.raises(ConversionNotAllowed):
            draft(with_type("multipart/mixed; boundary=o", body))


class TestFingerprint:
    def fingerprint(self, line: str = "", body: bytes = b"Hi") -> str:
        source = HEAD + (line.encode() + b"\r\n" if line else b"") + b"\r\n" + body
        return read_email(source, recipients=(ADA,)).fingerprint

    def test_a_repeat_differs_in_date_and_message_id_only(self):
        assert self.fingerprint("Date: x\r\nMessage-ID: <1@a>") == self.fingerprint("Date: y\r\nMessage-ID: <2@a>")

    def test_another_text_header_or_recipient_is_another_message(self):
        others = [self.fingerprint(body=b"Ho"), self.fingerprint("X-A: 1"), self.fingerprint("X-PM-Tag: a")]
        bcc = read_email(HEAD + b"\r\nHi", recipients=(ADA, EVE)).fingerprint
        assert len({self.fingerprint(), *others, bcc}) == 5
