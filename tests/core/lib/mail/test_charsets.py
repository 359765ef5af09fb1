"""Charsets of messages: names in any spelling, characters of the Encoding standard, and texts under a wrong name."""

import codecs
import encodings
import time
from encodings.aliases import aliases

import pytest

from core.lib.mail.charsets import decode_strictly, decode_tolerantly, decode_undeclared, find_codec
from core.lib.mail.encoded_words import decode_words
from tests.rows import each

NO_TEXT = ("zlib", "rot13", "hex", "base64", "bz2", "uu", "undefined", "punycode", "idna", "unicode_escape")
# Labels of the Encoding standard and of mail, by the codec that decodes them.
LABELS = {
    "cp1252": "iso-8859-1 ISO_8859-1:1987 latin1 l1 cp819 windows-1252 x-cp1252 windows1252 win-1252 ansi 28591",
    "cp1254": "iso-8859-9 latin5 windows-1254", "cp874": "tis-620 iso-8859-11 windows-874 dos-874 222",
    "cp932": "shift_jis sjis x-sjis windows-31j ms932 ms_kanji csShiftJIS",
    "gb18030": "gb2312 x-gbk GBK cp936 chinese 134",
    "cp949": "ks_c_5601-1987 ks_c_5601 euc-kr korean windows-949 x-windows-949 uhc", "koi8-r": "koi8-r koi8 koi",
    "koi8-u": "koi8-u koi8-ru", "iso8859-8": "iso-8859-8-i iso-8859-8-e visual logical hebrew csISO88598I",
    "big5hkscs": "big5 big5-hkscs cn-big5 x-x-big5 cp950 136", "mac-roman": "x-mac-roman macintosh mac csmacintosh",
    "mac-cyrillic": "x-mac-cyrillic x-mac-ukrainian", "mac-greek": "x-mac-greek",
    "euc_jp": "euc-jp x-euc-jp eucJP-ms",
    "iso2022_jp_ext": "iso-2022-jp csISO2022JP cp50220 cp50221 iso-2022-jp-ms",
    "cp850": "cp850 cp-850 ibm850 IBM-850 850",
    "utf-16-le": "utf-16 utf-16le unicode ucs-2", "utf-16-be": "utf-16be unicodefffe",
    "utf-7": "utf-7 unicode-1-1-utf-7",
    "utf-8": "utf8 UTF_8 unicode-1-1-utf-8 utf8mb4 cp65001", "x-user-defined": "x-user-defined",
    "iso8859-2": "iso-8859-2 latin2 iso8859-2", "iso8859-15": "iso-8859-15 latin9 csISOLatin9",
    "cp1251": "cp1251 win1251",
    "": "us-ascii ascii ANSI_X3.4-1968 x-unknown unknown-8bit ansi_x3.110-1983 8bit none default",
}  # fmt: skip
SPELLINGS = ('"{}"', "'{}'", " {} ", "{};", "{}; format=flowed", "{}*en", "charset={}", "{}//IGNORE", "{} (comment)")


def test_a_label_has_any_spelling():
    wrong = {
        (spelling, label)
        for codec, labels in LABELS.items()
        for label in labels.split()
        for spelling in ("{}", *SPELLINGS)
        if find_codec(spelling.format(label)) != codec or find_codec(spelling.format(label).upper()) != codec
    }
    assert wrong == set()
    assert find_codec("ISO 8859-1") == find_codec("Windows 1252") == find_codec("iso-8859-1 format=flowed") == "cp1252"


def test_every_alias_of_python_is_known_unless_it_decodes_no_text():
    # Python finds no alias in upper case, and no codec of Windows here.
    for alias in filter(str.islower, aliases.keys() - {"dbcs", "ansi", "mbcs", "oem", "tactis", "tis260"}):
        codec = find_codec(alias)
        assert codec or not codecs.lookup(alias)._is_text_encoding or codecs.lookup(alias).name == "ascii", alias
        decode_tolerantly(bytes(range(256)), alias)


@each("charset", NO_TEXT)
def test_a_codec_that_decodes_no_text_is_no_charset(charset):
    assert find_codec(charset) == ""
    assert decode_words(f"=?{charset}?q?Hello?=") == "Hello"


def test_unknown_names_leave_no_trace_in_memory():
    before = len(encodings._cache)
    for number in range(1_000):
        assert decode_words(f"=?x-nothing-{number}?q?a?=") == "a"
    assert len(encodings._cache) < before + 10


# Rows without a charset: the same for all names that say nothing.
TEXTS = [
    # Windows' characters under the names of ISO 8859, which never yields control characters.
    ("iso-8859-1", b"\x805.40 \x93quoted\x94 it\x92s", "€5.40 “quoted” it\u2019s"),
    ("iso-8859-15", b"\x93\xa4\x94", "“€”"),
    ("iso-8859-9", b"\x80 \xfd\xfe\xf0", "€ ışğ"), ("iso-8859-2", b"\x8a\x9e \xb3", "Šž ł"),
    ("latin1", b"a\x81b", "a\ufffdb"),
    ("windows-874", b"\xca\xc7\xd1\xca\xb4\xd5 \x80", "สวัสดี €"),
    ("tis-620", b"\xca\xc7\xd1\xca\xb4\xd5", "สวัสดี"),
    ("iso-8859-8-i", b"\xf9\xec\xe5\xed", "שלום"), ("windows-1255", b"\xf9\xec\xe5\xed\xca", "שלום\u05ba"),
    ("koi8-u", b"\xf0\xd2\xc9\xd7\xa6\xd4 \xae\xbe", "Привіт ўЎ"),
    ("x-mac-cyrillic", b"\x8f\xf0\xe8\xe2\xe5\xf2\xff", "Привет€"),
    ("x-mac-roman", b"caf\x8e \xdb", "café €"), ("x-user-defined", b"a\x80\xff", "a\uf780\uf7ff"),
    ("cp-850", b"caf\x82", "café"),
    ("windows-1251", b"\xcf\xf0\xe8\xe2\xe5\xf2", "Привет"), ("iso-8859-7", b"\xe1\xfe", "αώ"),
    # Japanese: NEC's and IBM's rows, half-width katakana, sets of ISO-2022-JP-2, and Windows' full-width signs.
    ("iso-2022-jp", b'\x1b$B$*@$OC\x1b(B\r\n\x1b$B-!-"-j\x1b(B', "お世話\r\n①②㈱"),
    ("iso-2022-jp", b"\x1b(I6E6E\x1b(B", "ｶﾅｶﾅ"),
    ("csISO2022JP", b"\x1b$@F|K\\\x1b(J~\\\x1b(B ~\\", "日本‾¥ ~\\"),
    ("iso-2022-jp", b'\x1b$By!|q$"\x1b(B', "纊ⅰあ"),
    ("iso-2022-jp", b"\x1b$B!A!]!q\x1b(B", "\uff5e\uff0d\uffe0"), ("iso-2022-jp", b'\x1b$(B$"\x1b(Bx', "あx"),
    ("iso-2022-jp", b'\x1b$(D"/\x1b(B', "˘"),
    ("iso-2022-jp-2", b"\x1b$A<:\x1b$(C4k\x1b(B", "己대"), ("iso-2022-jp", b'\x1b$B$"~~$"\x1b(B', "あ\ufffdあ"),
    ("iso-2022-jp", b'\x1b&@\x1b$B$"\x1b(Hx', "あx"),
    ("euc-jp", b"\xad\xa1\xad\xea\xa4\xa2\xf9\xa1", "①㈱あ纊"),
    ("euc-jp", b"\x8e\xb6\x8f\xb0\xa1\xa1\xc1", "ｶ丂\uff5e"),
    ("windows-31j", b"\x83e\x83X\x83g\x87@\xfc\x4b", "テスト①黑"), ("x-sjis", b"\xb6\xc5\\\xa0", "ｶﾅ\\\ufffd"),
    # Chinese and Korean.
    ("gb2312", b"\xe9F\x80\xc4\xe3", "镕€你"), ("x-gbk", b"\xc4\xe3\xa6\xd9\x81\x30\x81\x30", "你︐\x80"),
    ("gb18030", b"\x94\x39\xda\x33", "💩"), ("big5", b"\xa4\xa4\xf9\xd6\xa3\xe1\x87\xc2\xa1\x45", "中碁€鿇‧"),
    ("ks_c_5601-1987", b"\xb0\xa1\x81\x41", "가갂"), ("iso-2022-kr", b"\x1b$)C\x0e0!\x0f!", "가!"),
    ("hz-gb-2312", b"~{VPND~}", "中文"),
    # UTF.
    ("utf-7", b"Hi +AGEA5A- 1 +- 1, 2+2", "Hi aä 1 + 1, 2+2"), ("utf-7", b"+2D3cqQ-", "💩"),
    ("utf-16", "Grüße".encode("utf-16"), "Grüße"), ("utf-16", "Grü".encode("utf-16-le"), "Grü"),
    ("utf-16be", b"\0a", "a"),
    ("utf-16", b"Plain", "Plain"), ("utf-16", b"Plain text", "Plain text"), ("utf-16be", b"O`Y}", "你好"),
    ("unicode", "Grüße".encode(), "Grüße"), ("koi8-r", b"\xff\xfea\0", "a"),
    ("utf-8", b"\xef\xbb\xbfHello", "Hello"), ("iso-8859-1", b"\xef\xbb\xbfGr\xc3\xbc", "Grü"),
    ("utf-8", b"a\x00b", "ab"),
    # Single bytes that are none: the rest is read, from the next character on.
    ("gb2312", b"\xc4\xe3\xff\xba\xc3", "你\ufffd好"), ("gb2312", b"\xc4\xe3\xfe \xba\xc3", "你\ufffd 好"),
    ("big5", b"\xa4\xa4\xa3\xfe\xa4\xa4", "中\ufffd中"), ("euc-kr", b"\xb0\xa1\xc9\xa1\xb0\xa1", "가\ufffd가"),
    ("euc-jp", b"\xa4\xa2\x8f\xa1\xa1\xa4\xa2", "あ\ufffdあ"), ("sjis", b"\x82\xa0\xfd\x82\xa0", "あ\ufffdあ"),
    ("utf-8", b"Gr\xc3\xbc\xffe \xc3\xbc", "Grü\ufffde ü"), ("gb2312", b"\xc4", "\ufffd"),
    ("windows-1252", b"\x8d \xe9", "\ufffd é"),
    # UTF-8 and windows-1252 under another name or none.
    ("", "Grüße".encode(), "Grüße"), ("", b"Gr\xfc\xdfe \x80", "Grüße €"), ("us-ascii", b"caf\xe9", "café"),
    ("utf-8", b"Gr\xfc\xdfe", "Grüße"), ("windows-1252", "Ám ăn".encode(), "Ám ăn"),
    ("iso-8859-1", "À Á".encode(), "À Á"), ("x-unknown", b"\x93Hi\x94", "“Hi”"),
]  # fmt: skip
SAYS_NOTHING = ("", "us-ascii", "utf-8", "x-unknown", "unknown-8bit", "x" * 3_000)


def test_a_text_has_the_characters_of_the_standard():
    wrong = {
        (charset, data): text
        for charset, data, expected in TEXTS
        if (text := decode_tolerantly(data, charset)) != expected
    }
    assert wrong == {}


@each("charset", [*SAYS_NOTHING, "iso-8859-1", "shift_jis"])
def test_seven_bits_with_the_escapes_of_japanese_are_japanese(charset):
    for data, text in (
        (b"\x1b$B$*@$OC\x1b(B Hi", "お世話 Hi"), (b"a\x1b$@$*\x1b(J", "aお"), (b"\x1b(I6E\x1b(B", "ｶﾅ"),
        (b"\x1b[31mred\x1b[0m", "\x1b[31mred\x1b[0m"), ("\x1b$B ü".encode(), "\x1b$B ü"),
    ):  # fmt: skip
        if charset in SAYS_NOTHING or data.isascii():
            assert decode_tolerantly(data, charset) == text


HTML = b'<html><head><meta http-equiv="Content-Type" content="text/html; charset=windows-1251"></head>\xcf\xf0'


@each(("data", "charset", "end"), [
    (HTML, "", "Пр"), (HTML, "us-ascii", "Пр"), (HTML, "x-unknown", "Пр"), (HTML, "koi8-r", "оП"),
    (HTML, "utf-8", "Ïð"),
    (b"<META charset = 'koi8-r' />\xf0\xf2", "", "ПР"), (b"<meta name=x><meta charset=gbk>\xc4\xe3", "", "你"),
    (b'<?xml version="1.0" encoding="iso-8859-5"?>\xbf', "", "П"), (b"<meta charset=x-nothing>\xe9", "", "é"),
    (b"<meta charset=windows-1251>" + "é".encode(), "", "é"), (b"<p>charset=koi8-r\xe9", "", "é"),
    (b" " * 5_000 + b"<meta charset=koi8-r>\xe9", "", "é"), (b"<meta charset=utf-16>\xe9", "", "é"),
])  # fmt: skip
def test_html_may_name_its_charset(data, charset, end):
    assert decode_tolerantly(data, charset, kind="text/html").endswith(end)
    if find_codec(charset) == "":
        assert decode_tolerantly(data, charset).endswith(decode_undeclared(data)[-1:])


def test_a_program_that_waits_gets_the_same_text_or_a_refusal():
    for charset, data, text in TEXTS:
        is_guessed = charset in SAYS_NOTHING and "\ufffd" in data.decode("utf-8", "replace")
        if is_guessed or "\ufffd" in text or (charset, data) == ("utf-8", b"a\x00b"):
            with pytest.raises(UnicodeError):
                decode_strictly(data, charset)
        else:
            assert decode_strictly(data, charset) == text, (charset, data)
    assert decode_strictly(HTML, "", kind="text/html").endswith("Пр")


@each(("charset", "data", "reason"), [
    ("", b"\xff\xfe\xff", "not valid UTF-8$"), ("koi8-nothing", b"\xff\xff", "not valid koi8-nothing$"),
    ("us-ascii", b"caf\xe9", "not valid us-ascii$"), ("utf-8", b"\xff", "not valid utf-8$"),
    ("euc-jp", b"\xa4", "not valid"),
    ("iso-8859-1", b"\x81", "not valid iso-8859-1"), ("utf-8", b"a\0b", "NUL"),
    ("utf-16", b"\0\xd8", "surrogate|not valid"),
])  # fmt: skip
def test_a_text_that_no_charset_fits_is_refused_by_its_name(charset, data, reason):
    with pytest.raises(UnicodeError, match=reason):
        decode_strictly(data, charset)


@each("charset", [
    "gb18030", "euc-jp", "iso-2022-jp", "big5", "cp949", "sjis", "utf-7", "iso-2022-kr", "hz", "johab", "utf-16",
    "koi8-r",
])  # fmt: skip
def test_the_time_for_single_characters_is_bounded(charset):
    for unit in (b"\xff", b"\xad\xa1", b"\x80", b"\x1b$B-!\x1b(B", b"+A\xff", b"\x8f\xff", b"~{\xff", b"\x87\x7a"):
        began = time.thread_time()
        decode_tolerantly(unit * (4 * 1024 * 1024 // len(unit)), charset)
        assert time.thread_time() - began < 1, unit
