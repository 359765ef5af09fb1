"""Decoding of the texts in messages, by the Encoding standard of the WHATWG, as mail programs and browsers do.

Python has nearly all decoders of the standard; `charset_tables` has the names and characters that it lacks. Mail has
further charsets, texts without a charset, and texts under a wrong one (docs/decisions/0306). Linear in the length.
"""

import binascii
import codecs
import encodings
import pkgutil
import re
import sys
from contextlib import suppress
from encodings.aliases import aliases
from functools import lru_cache
from typing import Any

from core.lib.mail import charset_tables as tables

# NUL and surrogates, which neither HTML nor UTF-8 can represent.
UNENCODABLE = re.compile("[\0\ud800-\udfff]")
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
# Python's codecs that take quadratic time, or can produce arbitrary code points.
NO_CHARSETS = frozenset({"punycode", "idna", "unicode-escape", "raw-unicode-escape", "undefined", "charmap"})
# Python has no codec for these names, or a slow one.
OWN_DECODERS = frozenset({"utf-7", "x-user-defined"})

MAX_LABEL = 100
# A label, quoted or behind another `charset=`, before a comment, a further parameter or charset, or a language.
LABEL = re.compile(r"""[\s"']*+(?:charset\s*+=[\s"']*+)?([^;,/(*"']*+)""", re.IGNORECASE)
PUNCTUATION = re.compile(r"[^a-z0-9]+")
CODE_PAGE = re.compile(r"(?:cp|ms|ibm|dos|oem|win|windows|windowscp|codepage)(\d{3,5})")

# A byte-order mark decides, whatever the charset (https://encoding.spec.whatwg.org/#decode).
BYTE_ORDER_MARKS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_BE, "utf-16-be"), (codecs.BOM_UTF16_LE, "utf-16-le"))
# ESC $ B and the like in a text of 7 bits.
JAPANESE_ESCAPE = re.compile(rb"\x1b(?:\$[@B]|\$\([@BD]|\([JI])")
# Other ways to write them: with the byte that the standard for new sets has, of a revision, and a common mistake.
JAPANESE_ESCAPES = ((b"\x1b$(B", b"\x1b$B"), (b"\x1b$(@", b"\x1b$@"), (b"\x1b&@", b""), (b"\x1b(H", b"\x1b(J"))
# Sets of ISO-2022-JP-2 (RFC 1554) that the other codec does not have.
FOREIGN_ESCAPE = re.compile(rb"\x1b(?:\$A|\$\(C|\.[AF])")
# The beginning of HTML in which browsers look for its charset has 1,024 bytes; mail programs write long ones.
HTML_START = 4096
HTML_TAG = re.compile(rb"<(?:meta|\?xml)\b([^<>]*+)", re.IGNORECASE)
HTML_CHARSET = re.compile(rb"""(?:charset|encoding)\s*+=[\s"']*+([\w.:-]+)""", re.IGNORECASE)
UTF_7_RUN = re.compile(rb"\+([A-Za-z0-9+/]*+)-?")

# The beginning of a text that is read as UTF-7: the functions for a run of it take about a microsecond.
MAX_UTF_7 = 256 * 1024
# A repair takes about two microseconds. In a text with more of them, Python replaces characters.
MAX_REPAIRS = 10_000
REPAIR = "postrider-repair"
ASCII = bytes(range(0x80))
# The first bytes of characters.
LEADS = {
    "euc_jp": (0x8E, 0x8F, *range(0xA1, 0xFF)),
    "cp932": (*range(0x81, 0xA0), *range(0xE0, 0xFD)),
    **dict.fromkeys(("cp949", "gb18030", "big5hkscs"), range(0x81, 0xFF)),
}


class TooManyRepairs(ValueError):
    """Raised for a text of which hardly anything is in its charset."""


def decode_tolerantly(data: bytes, charset: str = "", *, kind: str = "text/plain") -> str:
    """Decode a text of a received message. Never raises.

    kind: its media type; HTML may name its charset itself.
    Bytes without a character become U+FFFD. A text that names no known charset is UTF-8, else windows-1252, which
    programs without a charset use.
    """
    text, _ = _decode(data, charset, kind)
    return without_unencodable(text)


def decode_strictly(data: bytes, charset: str, *, kind: str = "text/plain") -> str:
    """Decode a text by its charset, or as UTF-8. Raises UnicodeError with an explanation."""
    text, is_exact = _decode(data, charset, kind)
    if not is_exact:
        raise UnicodeError(f"A text is not valid {charset[:40] or 'UTF-8'}")
    if UNENCODABLE.search(text):
        raise UnicodeError("A text contains NUL or an unpaired surrogate")
    return text


def decode_undeclared(data: bytes, *, likely: str = "") -> str:
    """Decode bytes without a charset: as UTF-8 unless most characters beyond ASCII are not, else as windows-1252.

    likely: a charset that is tried in front of windows-1252. It is used if it contains ASCII, and all bytes have
    characters in it.
    Bytes of ASCII are kept, so that the result has the same structure, except for the second bytes of characters in the
    charsets of LEADS.
    """
    if (valid := _valid_utf_8(data)) is not None:
        return valid
    text = data.decode("utf-8", "replace")
    broken = text.count(REPLACEMENT)
    whole = len(text) - len(text.encode("ascii", "ignore")) - broken
    if whole >= broken:
        return text
    if _contains_ascii(codec := find_codec(likely)) and REPLACEMENT not in (text := _decode_by(data, codec)):
        return text
    return _decode_single_bytes(data, "cp1252")


def without_unencodable(text: str) -> str:
    """Return a text without NUL and surrogates."""
    plain = text.replace("\0", "")
    try:
        # Ten times as fast as a search; most texts have no such characters.
        plain.encode()
    except UnicodeEncodeError:
        return UNENCODABLE.sub("", plain)
    return plain


def find_codec(charset: str) -> str:
    """Return the name of the codec for a charset; empty for ASCII and an unknown charset."""
    return _find_codec(charset[:MAX_LABEL])


@lru_cache(maxsize=256)
def _find_codec(charset: str) -> str:
    label = LABEL.match(charset.lower())
    assert label
    # Blanks are part of a name (`ISO 8859-1`) or behind it.
    for text in (label[1], label[1].partition(" ")[0]):
        name = PUNCTUATION.sub("", text)
        code_page = CODE_PAGE.fullmatch(name.removeprefix("x"))
        for candidate in (name, name.removeprefix("x"), f"cp{code_page[1]}" if code_page else name):
            if codec := _known_names().get(candidate):
                return _standard_codec(codec)
    return ""


@lru_cache(maxsize=1)
def _known_names() -> dict[str, str]:
    """Return Python's codecs by their names without punctuation.

    Python keeps each name that it looks up in vain, so names in messages must not reach it.
    """
    python = sorted({*aliases, *(module.name for module in pkgutil.iter_modules(encodings.__path__))}, reverse=True)
    names = {PUNCTUATION.sub("", name): name for name in python}
    for labels in (tables.STANDARD_LABELS, tables.MAIL_LABELS):
        names |= {PUNCTUATION.sub("", label.lower()): codec for codec in labels for label in labels[codec].split()}
    return names


def _standard_codec(name: str) -> str:
    if name in OWN_DECODERS:
        return name
    try:
        codec = codecs.lookup(name).name
        # Some codecs decode no text. Python does not look for the codec of an empty one.
        b"ab".decode(codec, "replace")
    except (LookupError, ValueError):
        return ""
    return "" if codec in NO_CHARSETS else tables.SUPERSETS.get(codec, codec)


def _decode(data: bytes, charset: str, kind: str) -> tuple[str, bool]:
    """Return a text, and whether all bytes have characters in its charset."""
    codec = find_codec(charset)
    for mark, marked in BYTE_ORDER_MARKS:
        if data.startswith(mark):
            data, codec = data[len(mark) :], marked
            break
    else:
        if codec.startswith(("utf-16", "utf-32")) and _has_single_bytes(data):
            codec = ""
        if b"\x1b" in data and data.isascii() and JAPANESE_ESCAPE.search(data):
            codec = "iso2022_jp_ext"
    if codec in {"", "utf-8"}:
        if (text := _valid_utf_8(data)) is not None:
            return text, True
        codec = codec or (_find_html_codec(data) if kind == "text/html" else "")
        if codec in {"", "utf-8"}:
            return decode_undeclared(data), False
    text = _decode_by(data, codec)
    if REPLACEMENT in text and not data.isascii() and (other := _valid_utf_8(data)) is not None:
        return other, True
    return text, REPLACEMENT not in text


def _contains_ascii(codec: str) -> bool:
    """Return whether characters of ASCII have their own bytes and no others, where a character begins."""
    return codec in LEADS or (codec != "" and _single_bytes(codec).encode("ascii", "ignore") == ASCII)


def _valid_utf_8(data: bytes) -> str | None:
    with suppress(UnicodeDecodeError):
        return data.decode()
    return None


def _has_single_bytes(data: bytes) -> bool:
    """Return whether a text under the name of UTF-16 is UTF-8: without NUL, which UTF-16 has at least at line ends."""
    is_possible = b"\0" not in data and (len(data) % 2 == 1 or b" " in data or b"\n" in data)
    return is_possible and _valid_utf_8(data) is not None


def _find_html_codec(data: bytes) -> str:
    """Return the codec for the charset in <meta> or in the declaration of XML."""
    for tag in HTML_TAG.finditer(data[:HTML_START]):
        if found := HTML_CHARSET.search(tag[1]):
            codec = find_codec(found[1].decode("latin-1"))
            # A text that could name UTF-16 so is none.
            return "" if codec.startswith("utf-") else codec
    return ""


def _decode_by(data: bytes, codec: str) -> str:
    if codec == "utf-7":
        return (UTF_7_RUN.sub(_utf_7_characters, data[:MAX_UTF_7]) + data[MAX_UTF_7:]).decode("utf-8", "replace")
    if _single_bytes(codec):
        return _decode_single_bytes(data, codec)
    if codec == "iso2022_jp_ext":
        for escape, known in JAPANESE_ESCAPES:
            data = data.replace(escape, known)
        codec = "iso2022_jp_2" if FOREIGN_ESCAPE.search(data) else codec
    try:
        text = data.decode(codec, REPAIR)
    except TooManyRepairs:
        text = data.decode(codec, "replace")
    for python, standard in zip(*tables.CHARACTERS.get(codec, ((), ())), strict=True):
        text = text.replace(python, standard)
    return text


def _decode_single_bytes(data: bytes, codec: str) -> str:
    characters: Any = _single_bytes(codec)  # The stubs know dictionaries only.
    return codecs.charmap_decode(data, "strict", characters)[0]


@lru_cache(maxsize=128)
def _single_bytes(codec: str) -> str:
    """Return the characters of all bytes in a charset of one byte; empty for another charset.

    Bytes 80 to 9F of ISO 8859 are control characters, which text must not contain (RFC 2046, section 4.1.2): programs
    that write them mean those of Windows.
    """
    if codec == "x-user-defined":
        return "".join(chr(byte if byte < 0x80 else 0xF700 + byte) for byte in range(256))
    decoder = codecs.lookup(codec).incrementaldecoder
    table: str = getattr(sys.modules[decoder.__module__], "decoding_table", "")
    if codec.startswith("iso8859"):
        windows = _single_bytes("cp1250" if codec == "iso8859-2" else "cp1252")
        table = table[:0x80] + windows[0x80:0xA0] + table[0xA0:]
    known = tables.SINGLE_BYTES.get(codec, {})
    return "".join(known.get(byte, character) for byte, character in enumerate(table)).replace("\ufffe", REPLACEMENT)


def _utf_7_characters(run: re.Match[bytes]) -> bytes:
    octets = from_base64(run[1])
    if not octets:
        return b"+" if run[0] == b"+-" else run[0]
    return octets.decode("utf-16-be", "replace").encode("utf-8", "replace")


def from_base64(text: bytes) -> bytes:
    """Return the bytes of base64 without its padding and other characters; an incomplete one is dropped."""
    whole = text[: len(text) - (len(text) % 4 == 1)]
    return binascii.a2b_base64(whole + b"=" * (-len(whole) % 4))


def _repair(error: UnicodeError) -> tuple[str, int]:
    """Return a character for bytes that a codec does not know, and the position of the next one.

    A codec would continue within a character of two bytes, and take its second byte for the first of another one.
    error: the same for the whole text. Raises TooManyRepairs.
    """
    assert isinstance(error, UnicodeDecodeError)
    repairs = vars(error)
    repairs["count"] = repairs.get("count", 0) + 1
    if repairs["count"] > MAX_REPAIRS:
        raise TooManyRepairs
    codec, start = error.encoding, error.start
    pair = error.object[start : start + 2]
    if codec == "big5hkscs" and pair in tables.BIG5:
        return tables.BIG5[pair], start + 2
    if codec == "gb18030" and pair[0] == 0x80:
        return "\N{EURO SIGN}", start + 1
    if tables.CHARACTERS.get(codec) is tables.JAPANESE and (character := _windows_character(pair)):
        return character, start + 2
    if codec in LEADS:
        is_character = pair[0] in LEADS[codec] and pair[1:] >= b"\x80"
        size = 3 if codec == "euc_jp" and pair[0] == 0x8F else 2
        return REPLACEMENT, min(start + size, len(error.object)) if is_character else start + 1
    # A lost byte in front of an escape.
    return REPLACEMENT, start + 1 if pair[1:] == b"\x1b" else error.end


def _windows_character(pair: bytes) -> str:
    """Return a character of JIS X 0208 with the rows that NEC and IBM added; empty if there is none.

    pair: its bytes in EUC-JP or ISO-2022-JP.
    """
    row, cell = (byte - 0x21 - (pair[0] & 0x80) for byte in (pair if len(pair) == 2 else b"\0\0"))
    if not (0 <= row < 94 and 0 <= cell < 94):
        return ""
    lead = row // 2 + (0x81 if row < 62 else 0xC1)
    trail = cell + 0x9F if row % 2 else cell + 0x40 + (cell > 62)
    with suppress(UnicodeDecodeError):
        return bytes((lead, trail)).decode("cp932")
    return ""


codecs.register_error(REPAIR, _repair)
