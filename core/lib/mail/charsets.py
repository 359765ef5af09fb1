"""Codecs for the charset names found in received messages."""

import codecs
import encodings
import pkgutil
import re
from contextlib import suppress
from encodings.aliases import aliases

# Decoding takes quadratic time, or the codec can produce arbitrary code points.
SLOW = frozenset({"punycode", "idna", "utf-7", "unicode-escape", "raw-unicode-escape", "undefined"})

# NUL and surrogates, which neither HTML nor UTF-8 can represent.
UNENCODABLE = re.compile("[\0\ud800-\udfff]")
# Charsets whose names are used for a larger one, which has more characters at unused positions.
SUPERSETS = {"gb2312": "gb18030", "gbk": "gb18030", "shift_jis": "cp932", "euc_kr": "cp949", "big5": "big5hkscs"}

# Python keeps every name that it looked up in vain: names in messages would fill the memory.
KNOWN = frozenset({*aliases, *(module.name for module in pkgutil.iter_modules(encodings.__path__))})


def codec_name(charset: str) -> str:
    """Return the codec's canonical name; an empty text for an unknown charset."""
    normal = encodings.normalize_encoding(charset).lower()
    if normal not in KNOWN and normal.replace(".", "_") not in KNOWN:
        return ""
    try:
        return codecs.lookup(normal).name
    except (LookupError, ValueError):
        return ""


def find_codec(charset: str) -> str:
    """Return the codec's canonical name; UTF-8 for an unknown or slow charset."""
    name = codec_name(charset)
    try:
        # Some codecs decode no text. Python does not look for the codec of an empty one.
        b"ab".decode(name, "replace")
    except (LookupError, ValueError):
        return "utf-8"
    return "utf-8" if name in SLOW else name


def decode_leniently(data: bytes, charset: str = "") -> str:
    """Decode text by its charset if it is known and fast, else as UTF-8, else as Latin-1. Never raises."""
    return UNENCODABLE.sub("", _first_decoded(data, (find_codec(charset), "utf-8", "latin-1")) or "")


def decode_tolerantly(data: bytes, charset: str = "") -> str:
    """Decode text of a received message. Never raises.

    By its charset if that is known and fast, else as UTF-8, else as windows-1252, which programs without a charset use,
    with a replacement for each byte that has no character.
    """
    name = codec_name(charset)
    known = (find_codec(charset), SUPERSETS.get(name, "utf-8")) if name and name not in SLOW else ("utf-8",)
    text = _first_decoded(data, (*known, "utf-8"))
    if text is None:
        text = data.decode("windows-1252", "replace")
    # Most texts have no such characters, which a search finds a hundred times as fast as their replacement.
    return without_unencodable(text)


def without_unencodable(text: str) -> str:
    """Return a text without NUL and surrogates."""
    plain = text.replace("\0", "")
    return plain if plain.isascii() or not UNENCODABLE.search(plain) else UNENCODABLE.sub("", plain)


def decode_strictly(data: bytes, charset: str) -> str:
    """Decode text by its charset, or as UTF-8 if that is unknown or ASCII.

    Raises UnicodeError with an explanation.
    """
    name = codec_name(charset)
    if name in SLOW:
        raise UnicodeError(f"The charset {name} is not supported")
    codec = find_codec(charset)
    text = _first_decoded(data, (codec, SUPERSETS.get(codec, "utf-8"), "utf-8"))
    if text is None:
        raise UnicodeError(f"A text is not valid {charset[:40] or 'UTF-8'}")
    if UNENCODABLE.search(text):
        raise UnicodeError("A text contains NUL or an unpaired surrogate")
    return text


def _first_decoded(data: bytes, codecs_to_try: tuple[str, ...]) -> str | None:
    for codec in codecs_to_try:
        with suppress(UnicodeError, ValueError):
            return data.decode(codec)
    return None
