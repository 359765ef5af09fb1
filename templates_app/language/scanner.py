"""Cut the source of a template into texts and tags.

Every character is looked at a fixed number of times: a search that finds nothing ends the scan with an
error, so a megabyte of opening braces costs no more than a megabyte of prose.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, auto

from templates_app.language.errors import fault
from templates_app.language.names import Path
from templates_app.language.reader import KNOWN, Reader

MAX_TAGS = 10_000
SECTIONS = ("if", "unless", "each")
NO_PATH = Path("")
ONE_NAME = "A tag holds one name; helpers and expressions are not supported."
REFUSED = {
    ">": "Partials are not supported.",
    "&": "{{& }} is not supported: write {{{name}}} for a value that is not escaped.",
    "=": "Other delimiters than {{ and }} are not supported.",
    "^": "{{^ }} is not supported: write {{#unless name}}, or {{else}} inside a section.",
    "~": "Trimming with ~ is not supported.",
}


class Kind(Enum):
    VALUE = auto()
    RAW_VALUE = auto()
    COMMENT = auto()
    OPEN = auto()
    ELSE = auto()
    CLOSE = auto()


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag; at is the offset of its first brace.

    section is the word of OPEN and CLOSE, path the name of values and OPEN, default that of values.
    """

    kind: Kind
    at: int
    section: str = ""
    path: Path = NO_PATH
    default: str | None = None


def scan(source: str) -> Iterator[str | Tag]:
    """Yield texts and tags in their order. Raises TemplateSyntaxError.

    A backslash makes the two braces after it text; two of them are one backslash before a tag.
    """
    position = count = 0
    while (at := source.find("{{", position)) >= 0:
        slashes = _count_backslashes(source, at)
        yield source[position : at - bool(slashes)]
        if slashes == 1:
            yield "{{"
            position = at + 2
            continue
        count += 1
        if count > MAX_TAGS:
            raise fault(source, at, f"A template has at most {MAX_TAGS:,} tags.")
        reader = Reader(source, at)
        yield _read_tag(reader)
        position = reader.position
    yield source[position:]


def _count_backslashes(source: str, at: int) -> int:
    """Count the backslashes in front of a tag, two at most; they are text, for whatever came before ends in a brace."""
    return source.endswith("\\", 0, at) + source.endswith("\\\\", 0, at)


def _read_tag(reader: Reader) -> Tag:
    if reader.closing == "}}}":
        return _read_value(reader, Kind.RAW_VALUE)
    sign = reader.peek()
    if sign in REFUSED:
        raise reader.fault(f"{REFUSED[sign]} {KNOWN}")
    if sign in READERS:
        reader.is_past(sign)
        return READERS[sign](reader)
    start = reader.position
    if reader.word() == "else":
        reader.close("{{else}} stands alone: for {{else if}}, put an {{#if}} inside of the {{else}}.")
        return Tag(Kind.ELSE, reader.at)
    reader.position = start
    return _read_value(reader, Kind.VALUE)


def _read_value(reader: Reader, kind: Kind) -> Tag:
    path = reader.path()
    default = _read_default(reader) if reader.is_past("|") else None
    reader.close(f"{ONE_NAME} {KNOWN}")
    return Tag(kind, reader.at, path=path, default=default)


def _read_default(reader: Reader) -> str:
    if not reader.is_past('"'):
        raise reader.fault('A default stands in double quotes, as in {{name|"there"}}.')
    return reader.rest_of_string()


def _read_comment(reader: Reader) -> Tag:
    # The search begins before the dashes, so {{!--}} is a whole comment.
    has_dashes = reader.source.startswith("--", reader.position)
    reader.skip_past("--}}" if has_dashes else "}}")
    return Tag(Kind.COMMENT, reader.at)


def _read_open(reader: Reader) -> Tag:
    section = _read_section(reader)
    path = reader.path()
    reader.close(f"{{{{#{section}}}}} takes one name; helpers and expressions are not supported.")
    return Tag(Kind.OPEN, reader.at, section=section, path=path)


def _read_close(reader: Reader) -> Tag:
    section = _read_section(reader)
    reader.close(f"{{{{/{section}}}}} stands alone.")
    return Tag(Kind.CLOSE, reader.at, section=section)


def _read_section(reader: Reader) -> str:
    word = reader.word()
    if word not in SECTIONS:
        raise reader.fault(f"{word[:60]!r} is not a section: there are {{{{#if}}}}, {{{{#unless}}}} and {{{{#each}}}}.")
    return word


READERS: dict[str, Callable[[Reader], Tag]] = {"!": _read_comment, "#": _read_open, "/": _read_close}
