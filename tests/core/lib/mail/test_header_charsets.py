"""Header fields with octets that are neither encoded nor UTF-8, read by the charset that the message declares."""

import time

from core.lib.mail.header_fields import decode_header
from tests.rows import each


def decoded(value: bytes, content_type: str, *, name: str = "Subject") -> str:
    """Return the value of a field of a message with this Content-Type."""
    header = b"Received: by a.example\r\n%s: %s\r\nContent-Type: %s" % (
        name.encode(), value, content_type.encode(),
    )  # fmt: skip
    field = decode_header(header).split("\n")[1]
    assert field.startswith(f"{name}: ")
    return field.removeprefix(f"{name}: ")


@each(("charset", "text"), [
    ("koi8-r", "Проверка связи"), ("windows-1251", "Счёт № 5"), ("iso-8859-2", "Łódź"), ("iso-8859-7", "Αθήνα"),
    ("windows-1255", "שלום"), ("windows-1256", "مرحبا"), ("tis-620", "สวัสดี"), ("euc-kr", "안녕하세요"),
    ("gb2312", "你好 a"), ("big5", "許功蓋"), ("shift_jis", "ソニー表示"), ("euc-jp", "日本語"),
    ("x-mac-roman", "Ünder"),
])  # fmt: skip
def test_a_subject_is_read_by_the_charset_of_its_body(charset, text):
    for content_type in (f"text/plain; charset={charset}", f'TEXT/HTML (x);\r\n\tformat=flowed; Charset="{charset}"'):
        for name in ("Subject", "comments", "Thread-Topic"):
            assert decoded(text.encode(charset.removeprefix("x-")), content_type, name=name) == text


# From SpamAssassin's tests (t/data/nice/cjk) and those of mail-mime-parser.
@each(("name", "value", "content_type", "text"), [
    ("Subject", b"[SLAT-talk] \xb9d\xc3\xfb6\xa4\xeb17\xa4\xe9\xb7s\xa4\xf9\xa4S\xa8\xec.\xa6p\xa6\xb3",
     "text/html; charset=big5", "[SLAT-talk] 鉅靡6月17日新片又到.如有"),
    ("Subject", b"\xc8\xab\xd0\xc2\xd4\xad\xd7\xb0\xbd\xf8\xbf\xda", "text/plain; charset=gb2312", "全新原装进口"),
    ("From", b'"\xcc\xa8\xcd\xe5\xf6\xce\xc1\xfa\xc9\xcc\xc3\xb3\xbc\xaf\xcd\xc5\xb9\xab\xcb\xbe" <1234@e34.com>',
     "text/plain; charset=gb2312", '"台湾鑫龙商贸集团公司" <1234@e34.com>'),
    ("Subject", b"Die Hasen und die Fr\xf6sche", 'text/plain; charset="iso-8859-1"', "Die Hasen und die Frösche"),
    ("To", b'"J\xfcrgen Schm\xfcrgen" <schmuergen@example.com>', "text/plain; charset=invalid-charset",
     '"Jürgen Schmürgen" <schmuergen@example.com>'),
])  # fmt: skip
def test_public_messages_are_read(name, value, content_type, text):
    assert decoded(value, content_type, name=name) == text


@each(("value", "content_type", "text"), [
    # UTF-8 is never a coincidence.
    ("Grüße".encode(), "text/plain; charset=koi8-r", "Grüße"),
    ("Grüße € ".encode() + b"\xff", "text/plain; charset=koi8-r", "Grüße € \ufffd"),
    # No charset, one that says nothing, and those of which ASCII or line ends are no part.
    *((b"caf\xe9 +AAo- ~{", f"text/plain; charset={name}", "café +AAo- ~{") for name in (
        "", "us-ascii", "utf-8", "x-unknown", "utf-16", "utf-7", "utf-32", "cp037", "hz", "iso-2022-jp", "mac-arabic")),
    (b"caf\xe9", "", "café"), (b"caf\xe9", "text/plain", "café"), (b"caf\xe9", "; charset", "café"),
    # Another charset than that of the body.
    (b"caf\xe9", "text/plain; charset=gb2312", "café"), (b"caf\xe9", "text/plain; charset=shift_jis", "café"),
    (b"\x93caf\xe9\x94", "text/plain; charset=iso-8859-1", "\u201ccafé\u201d"),
    # Encoded words have charsets of their own.
    (b"=?iso-8859-1?Q?Gr\xfc=DFe?=", "text/plain; charset=koi8-r", "=?iso-8859-1?Q?Grü=DFe?="),
])  # fmt: skip
def test_other_octets_are_utf_8_or_windows_1252(value, content_type, text):
    assert decoded(value, content_type) == text


@each(("text", "is_read"), [
    ('"日本" <ada@example.com>', True), ("日本 <ada@example.com>", True), ('"ソニー" <ada@example.com>', False),
    ("ア <ada@example.com>", True), ("ァ <ada@example.com>", False), ("ゼ <ada@example.com>", False),
])  # fmt: skip
def test_no_character_hides_the_structure_of_an_address(text, is_read):
    """The second byte of ソ is a backslash, and that of ァ an at sign, to a program that reads the structure first."""
    value = text.encode("shift_jis")
    read = decoded(value, "text/plain; charset=shift_jis", name="From")
    assert read == (text if is_read else decoded(value, "", name="From"))


def test_the_first_content_type_counts():
    header = b"Subject: \xe4\nContent-Type: text/plain; charset=koi8-r\nContent-Type: text/plain; charset=iso-8859-7"
    assert decode_header(header).startswith("Subject: Д\n")
    assert decode_header(b"X-Content-Type: a; charset=koi8-r\nSubject: \xe4").endswith("ä")


@each("unit", [b"\xff", b"\x81", b"\x81\xff", b"@\x81", b"\x81\nSubject: \xff", b";charset=x\xff", b"\xe4\r\n "])
def test_a_hostile_header_takes_linear_time(unit):
    for charset in (b"gb18030", b"shift_jis", b"big5", b"euc-jp", b"koi8-r", b"x" * 1000):
        for name in (b"Subject: ", b"From: ", b"Content-Type: "):
            header = b"Content-Type: text/plain; charset=" + charset + b"\n" + name + unit * (128 * 1024 // len(unit))
            began = time.thread_time()
            decode_header(header)
            assert time.thread_time() - began < 0.2, (charset, name)
