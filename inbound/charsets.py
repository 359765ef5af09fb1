"""Which codec decodes what a foreign message names as its charset."""

import codecs
import re

# Decoding these takes time squared in the length, or turns text into code points at will.
SLOW = frozenset({"punycode", "idna", "utf-7", "unicode-escape", "raw-unicode-escape", "undefined"})

# What neither HTML nor UTF-8 can carry.
UNSEEN = re.compile("[\0\ud800-\udfff]")


def codec_of(charset: str) -> str:
    """Return the codec's own name, UTF-8 for what is no charset or a slow one."""
    try:
        name = codecs.lookup(charset).name
        b"".decode(name)
    except (LookupError, ValueError):
        return "utf-8"
    return "utf-8" if name in SLOW else name
