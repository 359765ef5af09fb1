"""Charset names of messages: known ones in any spelling, and no trace of unknown ones."""

import codecs
import encodings
from encodings.aliases import aliases

import pytest

from core.lib.mail.charsets import SLOW, codec_name, decode_strictly, find_codec
from core.lib.mail.encoded_words import decode_words
from tests.rows import each


@each(("charset", "codec"), [
    ("UTF-8", "utf-8"), ("ISO-8859-1", "iso8859-1"), ("Windows-1252", "cp1252"), ("koi8-u", "koi8-u"),
    ("ANSI_X3.4-1968", "ascii"), ("utf-7", "utf-8"), ("zlib", "utf-8"), ("aliases", "utf-8"), ("x-nothing", "utf-8"),
    ("", "utf-8"),
])  # fmt: skip
def test_a_charset_has_a_codec_that_decodes_text(charset, codec):
    assert find_codec(charset) == codec


def test_every_alias_of_python_is_known():
    # Python finds no alias in upper case, and no codec of Windows here.
    for alias in filter(str.islower, aliases.keys() - {"dbcs", "ansi", "mbcs", "oem", "tactis", "tis260"}):
        assert codec_name(alias) == codecs.lookup(alias).name
    assert all(find_codec(name) == "utf-8" for name in SLOW)


@each("charset", ["zlib", "rot13", "hex", "base64", "bz2", "uu", "undefined"])
def test_a_codec_that_decodes_no_text_is_no_charset(charset):
    assert decode_words(f"=?{charset}?q?Hello?=") == "Hello"


def test_unknown_names_leave_no_trace_in_memory():
    before = len(encodings._cache)
    for number in range(1_000):
        assert decode_words(f"=?x-nothing-{number}?q?a?=") == "a"
    assert len(encodings._cache) < before + 10


@each(("charset", "named"), [("", "UTF-8"), ("koi8-nothing", "koi8-nothing")])
def test_a_text_that_no_charset_fits_is_refused_by_its_name(charset, named):
    with pytest.raises(UnicodeError, match=f"not valid {named}$"):
        decode_strictly(b"\xff\xfe\xff", charset)
