"""Template scanner: splits the source into texts and tags.

Each character is visited a fixed number of times: a search without a match ends the scan with an error, so a megabyte
of opening braces costs no more than a megabyte of prose.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, auto

from templates_app.language.errors import syntax_error
from templates_app.language.names import VariablePath
from templates_app.language.reader import KNOWN_TAGS, TagReader

MAX_TAGS = 10_000
SECTION_WORDS = ("if", "unless", "each")
NO_PATH = VariablePath("")
ONE_NAME = "A tag takes one name; helpers and expressions are not supported."
REFUSED = {
    ">": "Partials are not supported.",
    "&": "{{& }} is not supported: write {{{name}}} for an unescaped value.",
    "=": "Delimiters other than {{ and }} are not supported.",
    "^": "{{^ }} is not supported: write {{#unless name}}, or {{else}} inside a section.",
    "~": "Whitespace control with ~ is not supported.",
}


class TagKind(Enum):
    VALUE = auto()
    RAW_VALUE = auto()
    COMMENT = auto()
    OPEN = auto()
    ELSE = auto()
    CLOSE = auto()


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag. offset: the position of its first brace.

    section: the section word of OPEN and CLOSE. path: the name in values and OPEN. default: only for values.
    """

    kind: TagKind
    offset: int
    section: str = ""
    path: VariablePath = NO_PATH
    default: str | None = None


def scan(source: str) -> Iterator[str | Tag]:
    """Yield texts and tags in order. Raises TemplateSyntaxError.

    A backslash escapes the two braces after it; two backslashes are a literal one before a tag.
    """
    position = count = 0
    while (offset := source.find("{{", position)) >= 0:
        slashes = _count_backslashes(source, offset)
        yield source[position : offset - bool(slashes)]
        if slashes == 1:
            yield "{{"
            position = offset + 2
            continue
        count += 1
        if count > MAX_TAGS:
            raise syntax_error(source, offset, f"A template can have at most {MAX_TAGS:,} tags.")
        reader = TagReader(source, offset)
        yield _read_tag(reader)
        position = reader.position
    yield source[position:]


def _count_backslashes(source: str, offset: int) -> int:
    """Count the backslashes before a tag, at most two. They belong to the text: a preceding tag ends in a brace."""
    return source.endswith("\\", 0, offset) + source.endswith("\\\\", 0, offset)


def _read_tag(reader: TagReader) -> Tag:
    if reader.closing == "}}}":
        return _read_value(reader, TagKind.RAW_VALUE)
    sign = reader.peek()
    if sign in REFUSED:
        raise reader.error(f"{REFUSED[sign]} {KNOWN_TAGS}")
    if sign in READERS:
        reader.accept(sign)
        return READERS[sign](reader)
    start = reader.position
    if reader.read_word() == "else":
        reader.expect_close("{{else}} takes no name. Instead of {{else if}}, put an {{#if}} inside the {{else}}.")
        return Tag(TagKind.ELSE, reader.offset)
    reader.position = start
    return _read_value(reader, TagKind.VALUE)


def _read_value(reader: TagReader, kind: TagKind) -> Tag:
    path = reader.read_path()
    default = _read_default(reader) if reader.accept("|") else None
    reader.expect_close(f"{ONE_NAME} {KNOWN_TAGS}")
    return Tag(kind, reader.offset, path=path, default=default)


def _read_default(reader: TagReader) -> str:
    if not reader.accept('"'):
        raise reader.error('A default must be in double quotes, as in {{name|"there"}}.')
    return reader.read_string_rest()


def _read_comment(reader: TagReader) -> Tag:
    # The search starts before the dashes, so {{!--}} is a complete comment.
    has_dashes = reader.source.startswith("--", reader.position)
    reader.skip_past("--}}" if has_dashes else "}}")
    return Tag(TagKind.COMMENT, reader.offset)


def _read_open(reader: TagReader) -> Tag:
    section = _read_section(reader)
    path = reader.read_path()
    reader.expect_close(f"{{{{#{section}}}}} takes one name; helpers and expressions are not supported.")
    return Tag(TagKind.OPEN, reader.offset, section=section, path=path)


def _read_close(reader: TagReader) -> Tag:
    section = _read_section(reader)
    reader.expect_close(f"{{{{/{section}}}}} takes no name.")
    return Tag(TagKind.CLOSE, reader.offset, section=section)


def _read_section(reader: TagReader) -> str:
    word = reader.read_word()
    if word not in SECTION_WORDS:
        raise reader.error(f"{word[:60]!r} is not a section. Use {{{{#if}}}}, {{{{#unless}}}} or {{{{#each}}}}.")
    return word


READERS: dict[str, Callable[[TagReader], Tag]] = {"!": _read_comment, "#": _read_open, "/": _read_close}
