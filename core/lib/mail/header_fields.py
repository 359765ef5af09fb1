"""Header fields (RFC 5322) and their parameters (RFC 2045, RFC 2231), in time linear in their length.

Fields about the content are read as mail programs read them, also malformed ones (docs/decisions/0311).
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import groupby
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
CONTENT_TYPE = re.compile(rb"content-type[ \t]*+:", re.IGNORECASE)
MAX_CONTENT_TYPE = 4_000
# The characters of structures that may be second bytes in charsets of Japanese and Chinese.
MARKS = "@[\\]"
# Fields without structure (RFC 5322, section 3.6.5).
PROSE = re.compile(rb"(?:subject|comments|thread-topic)[ \t]*+:", re.IGNORECASE)

# A comment (RFC 5322, section 3.2.2), with comments in it. Groups are not possessive: Python 3.11 continues behind a
# part of one that does not match.
COMMENT = r"\((?:[^()\\]++|\\.|\((?:[^()\\]++|\\.)*\))*\)"
GAP = rf"(?:\s|{COMMENT})*"
WORD = r'[^\s;,:()"=/]'
# Parameters that white space or a comma may precede instead of a semicolon; in other places it is part of a value.
KNOWN = (
    r"(?:boundary|charset|creation-date|delsp|filename|format|method|micalg|modification-date|name|protocol"
    r"|report-type|size|start|type)(?:\*[0-9]{0,3}\*?)?\s*+="
)
# A quoted string. One without an end takes the rest, so that it does not take quadratic time.
QUOTED = r'"(?:[^"\\]++|\\.)*(?:"|\\?\Z)'
FIRST_WORD = re.compile(rf'{GAP}"?+(?:({WORD}++)(?!\s*=)(?:{GAP}/{GAP}({WORD}*+))?)?', re.DOTALL)
SEPARATORS = re.compile(r"[;,:\s]*+")
PARAMETER = re.compile(
    rf'[;,:\s]*+(?:{COMMENT}[;,:\s]*+)*([^\s=;"(]{{1,200}})\s*+=\s*+'
    rf'((?:[^\s,;"(]++|{QUOTED}|(?<=[\s"]){COMMENT}|\(|(?![\s,]++{KNOWN})[\s,]++)*)',
    re.DOTALL | re.IGNORECASE,
)
NEXT_KNOWN = re.compile(rf"(?<![;,\s])[;,\s]++(?={KNOWN})", re.IGNORECASE)
QUOTED_STRING = re.compile(r'"((?:[^"\\]++|\\.)*)("|\\?\Z)', re.DOTALL)
COMMENTS = re.compile(rf"(?:\A|(?<!\s)\s++){COMMENT}", re.DOTALL)
# The grammar, with what programs write without any doubt: characters of values that should be quoted.
EXACT = re.compile(
    rf"{GAP}{WORD}++(?:{GAP}/{GAP}{WORD}++)?{GAP}"
    rf'(?:;{GAP}(?:[^\s=;"()]++{GAP}={GAP}(?:[^\s;,"()]++|"(?:[^"\\]++|\\.)*"){GAP})?)*',
    re.DOTALL,
)
# Other backslashes are part of the value: some programs send a path.
QUOTED_PAIR = re.compile(r'\\(["\\])')
# name*1*: the second section of a value, with its octets encoded (RFC 2231, section 3).
SECTION = re.compile(r"([^*]+)(?:\*([0-9]{1,3}))?(\*)?")
# The place of a value without sections among the numbers of sections, with octets and without.
ENCODED_VALUE, PLAIN_VALUE = -1, 1000
# In front of octets: charset'language'.
ANY_CHARSET = re.compile(r"([^']*)'[^']*'")
KNOWN_CHARSET = re.compile(
    r"((?:utf|us-|iso|windows|cp|koi|mac|gb|big5|shift|euc|ks_c)[\w.:-]{0,40})'(?:[a-z-]*')?", re.IGNORECASE
)
# Parentheses are part of a name.
FILE_NAMES = frozenset({"name", "filename"})


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


class DecisiveField(NamedTuple):
    """The value of a field about the content.

    word: a media type or disposition in lower case; empty without one.
    parameters: decoded, by their names in lower case.
    is_exact: whether all programs read it alike.
    """

    word: str
    parameters: Mapping[str, str]
    is_exact: bool


def decode_header(data: bytes) -> str:
    """Return a header as text with LF at line ends.

    Its charset is UTF-8 (RFC 6532), else that of its Content-Type, else windows-1252: older programs send both
    (docs/decisions/0359).
    """
    try:
        text = data.decode()
    except UnicodeDecodeError:
        fields = RAW_FIELD_END.split(data, MAX_DECODED_FIELDS)
        charset = _declared_charset(fields)
        text = "\n".join(_decode_field(field, charset) for field in fields)
    return text.replace("\r\n", "\n")


def _declared_charset(fields: Iterable[bytes]) -> str:
    """Return the charset in the first Content-Type, "" without one."""
    value = next((field[found.end() :] for field in fields if (found := CONTENT_TYPE.match(field))), b"")
    text = decode_undeclared(value[:MAX_CONTENT_TYPE])
    return read_content_field(" ".join(text.split())).parameters.get("charset", "")


def _decode_field(field: bytes, charset: str) -> str:
    """Decode a field by the charset of the body, if its structure stays what it is in ASCII.

    The second byte of a Japanese or Chinese character may be an at sign or a backslash. Octets within an encoded word
    have the charset of the word.
    """
    text = decode_undeclared(field, likely="" if b"=?" in field else charset)
    is_kept = all(text.count(mark) == field.count(mark.encode()) for mark in MARKS)
    return text if is_kept or PROSE.match(field) else decode_undeclared(field)


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


def read_content_field(value: str) -> DecisiveField:
    """Return the first word and the parameters of a field about the content.

    White space and commas separate parameters, too, if a known one follows. A first word with an equals sign is a
    parameter.
    """
    first = FIRST_WORD.match(value)
    assert first
    word = "/".join(filter(None, first.groups())).lower()
    return DecisiveField(word, _parameters(value, first.end()), EXACT.fullmatch(value) is not None)


def _parameters(value: str, position: int) -> dict[str, str]:
    sections: dict[str, dict[int, tuple[bool, str]]] = {}
    for name, text in _read_parameters(value, position):
        if section := SECTION.fullmatch(name.lower()):
            number = int(section[2]) if section[2] else ENCODED_VALUE if section[3] else PLAIN_VALUE
            sections.setdefault(section[1], {}).setdefault(number, (bool(section[3]), _unquoted(text, section[1])))
    return {name: _joined(numbered) for name, numbered in sections.items()}


def _read_parameters(value: str, position: int) -> Iterator[tuple[str, str]]:
    """Yield the parameters from a position on. A quoted string without an end takes no known parameter, once."""
    is_repaired = False
    while 0 <= position < len(value):
        found = PARAMETER.match(value, position)
        if found is None:
            separators = SEPARATORS.match(value, position)
            position = value.find(";", separators.end() if separators else position)
            continue
        name, text = found.groups()
        position = found.end()
        if not is_repaired and not all(quoted[2] == '"' for quoted in QUOTED_STRING.finditer(text)):
            is_repaired = True
            if known := NEXT_KNOWN.search(value, found.start(2)):
                text, position = value[found.start(2) : known.start()], known.end()
        yield name, text


def _unquoted(text: str, name: str) -> str:
    """Return a value without quotes; without comments unless it is the name of a file."""
    plain = text.strip()
    if name not in FILE_NAMES:
        plain = COMMENTS.sub("", plain).strip() or plain
    return QUOTED_STRING.sub(lambda quoted: QUOTED_PAIR.sub(r"\1", quoted[1]), plain) if plain[:1] == '"' else plain


def _joined(sections: Mapping[int, tuple[bool, str]]) -> str:
    """Return the value of a parameter: the encoded one, else its sections in their order, else the other one."""
    numbers = sorted(sections)
    chosen = numbers[:1] if numbers[0] == ENCODED_VALUE else [one for one in numbers if one != PLAIN_VALUE] or numbers
    charset, ordered = _without_charset([sections[number] for number in chosen])
    return "".join(
        decode_tolerantly(b"".join(unquote_to_bytes(text) for _, text in group), charset)
        if is_encoded
        else "".join(text for _, text in group)
        for is_encoded, group in groupby(ordered, key=lambda section: section[0])
    )


def _without_charset(sections: list[tuple[bool, str]]) -> tuple[str, list[tuple[bool, str]]]:
    """Return the charset in front of the first encoded section (RFC 2231, section 4.1), and the sections without it."""
    index = next((index for index, (is_encoded, _) in enumerate(sections) if is_encoded), None)
    if index is None:
        return "", sections
    text = sections[index][1]
    found = KNOWN_CHARSET.match(text) or (ANY_CHARSET.match(text) if not index else None)
    if found is None:
        return "", sections
    return found[1], [*sections[:index], (True, text[found.end() :]), *sections[index + 1 :]]
