"""Codecs for the charset names found in received messages."""

import codecs
import re

# Decoding takes quadratic time, or the codec can produce arbitrary code points.
SLOW = frozenset({"punycode", "idna", "utf-7", "unicode-escape", "raw-unicode-escape", "undefined"})

# NUL and surrogates, which neither HTML nor UTF-8 can represent.
UNENCODABLE = re.compile("[\0\ud800-\udfff]")


def find_codec(charset: str) -> str:
    """Return the codec's canonical name; UTF-8 for an unknown or slow charset."""
    try:
        name = codecs.lookup(charset).name
        b"".decode(name)
    except (LookupError, ValueError):
        return "utf-8"
    return "utf-8" if name in SLOW else name
