"""Codecs for the charset names found in received messages."""

import codecs
import encodings
import pkgutil
import re
from encodings.aliases import aliases

# Decoding takes quadratic time, or the codec can produce arbitrary code points.
SLOW = frozenset({"punycode", "idna", "utf-7", "unicode-escape", "raw-unicode-escape", "undefined"})

# NUL and surrogates, which neither HTML nor UTF-8 can represent.
UNENCODABLE = re.compile("[\0\ud800-\udfff]")


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
