"""Header fields (RFC 5322) and their parameters (RFC 2045, RFC 2231), in time linear in their length."""

import re
from collections.abc import Callable, Iterator, Mapping
from itertools import count, takewhile
from typing import NamedTuple
from urllib.parse import unquote_to_bytes

from core.lib.mail.charsets import decode_tolerantly, decode_undeclared
from core.lib.mail.encoded_words import decode_words

FIELD = re.compile(r"([!-9;-~]{1,200})[ \t\n]*:(.*)", re.DOTALL)
FIELD_END = re.compile(r"\n(?![ \t])")
RAW_FIELD_END = re.compile(rb"\n(?![ \t])")
# Those behind have one charset.
MAX_DECODED_FIELDS = 400
FOLD = re.compile(r"\n(?=[ \t])")
# A value ends at a semicolon outside of quotes. Possessive, so that a missing quote does not take quadratic time.
PARAMETER = re.compile(r';\s*+([^\s=;"]{1,200})\s*+=\s*+((?:[^;"]++|"(?:[^"\\]|\\.)*+(?:"|\\?\Z))*+)', re.DOTALL)
# Other backslashes are part of the value: some programs send a path.
QUOTED_PAIR = re.compile(r'\\(["\\])')
# name*1*: the second section of a value, with its octets encoded (RFC 2231, section 3).
SECTION = re.compile(r"([^*]+)(?:\*([0-9]{1,3}))?(\*)?")


class MessageField(NamedTuple):
    """A field as received. raw: its value, with LF at each fold."""

    name: str
    raw: str

    @property
    def value(self) -> str:
        """The unfolded value."""
        return FOLD.sub("", self.raw).replace("\t", " ").strip()

    @property
    def decoded(self) -> str:
        """The unfolded value with its encoded words decoded."""
        return decode_words(self.value)


def decode_header(data: bytes) -> str:
    """Return a header as text with LF at line ends: UTF-8 (RFC 6532), or windows-1252, which older programs send."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = "\n".join(map(decode_undeclared, RAW_FIELD_END.split(data, MAX_DECODED_FIELDS)))
    return text.replace("\r\n", "\n")


def read_fields(header: str, *, limit: int, refuse: Callable[[str], None] = lambda _: None) -> Iterator[MessageField]:
    """Yield the first `limit` fields of a header, and drop other lines.

    refuse: called with an explanation of the dropped lines; it may raise an exception.
    """
    lines = FIELD_END.split(header, limit)
    if len(lines) > limit:
        refuse(f"The header has more than {limit} fields")
    for line in filter(None, lines[:limit]):
        if field := FIELD.fullmatch(line):
            yield MessageField(field[1], field[2])
        else:
            refuse(f"A header line is not a field: {FOLD.sub('', line)[:60]!a}")


def read_parameters(value: str) -> dict[str, str]:
    """Return the decoded parameters after the first word of a value, by their names in lower case."""
    sections: dict[str, dict[int, tuple[bool, str]]] = {}
    for name, text in PARAMETER.findall(value):
        if section := SECTION.fullmatch(name.lower()):
            sections.setdefault(section[1], {}).setdefault(int(section[2] or 0), (bool(section[3]), _unquoted(text)))
    return {name: _joined(numbered) for name, numbered in sections.items()}


def _unquoted(text: str) -> str:
    plain = text.strip()
    is_quoted = len(plain) > 1 and plain[0] == plain[-1] == '"'
    return QUOTED_PAIR.sub(r"\1", plain[1:-1]) if is_quoted else plain


def _joined(sections: Mapping[int, tuple[bool, str]]) -> str:
    """Return the value of a parameter; the first of its encoded sections begins with charset'language'."""
    numbers = takewhile(sections.__contains__, count(min(sections)))
    ordered = [sections[number] for number in numbers]
    is_encoded, first = ordered[0]
    if not is_encoded:
        return "".join(text for _, text in ordered)
    charset, quote, rest = first.partition("'")
    texts = [(True, rest.partition("'")[2] if quote else first), *ordered[1:]]
    octets = (unquote_to_bytes(text) if has_octets else text.encode() for has_octets, text in texts)
    return decode_tolerantly(b"".join(octets), charset)
