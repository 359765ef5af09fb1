"""Template scanner: splits the source into texts and tags.

Each character is visited a fixed number of times: a search without a match ends the scan with an error, so a megabyte
of opening braces costs no more than a megabyte of prose.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, auto

from core.lib.coded_texts import CodedText, join_sentences
from templates_app.language.errors import syntax_error
from templates_app.language.formats import HELPERS, check_argument
from templates_app.language.names import VariablePath
from templates_app.language.nodes import Literal, Operand
from templates_app.language.reader import KNOWN_TAGS, TagReader

MAX_TAGS = 10_000
MAX_PARAMETERS = 20
# An alias or an id.
PARTIAL_NAME = re.compile("[A-Za-z][A-Za-z0-9._-]{0,99}")
COMPARISONS = ("equals", "notEquals", "greaterThan", "lessThan", "and", "or")
CONDITIONS = ("if", "unless", *COMPARISONS)
SECTION_WORDS = (*CONDITIONS, "with", "each")
NO_PATH = VariablePath("")
REFUSED = {
    "&": CodedText("templates_app.ampersand"),
    "=": CodedText("templates_app.delimiters"),
    "^": CodedText("templates_app.caret"),
    "~": CodedText("templates_app.whitespace_control"),
}


class TagKind(Enum):
    VALUE = auto()
    RAW_VALUE = auto()
    PARTIAL = auto()
    COMMENT = auto()
    OPEN = auto()
    ELSE = auto()
    CLOSE = auto()


@dataclass(frozen=True, slots=True)
class Tag:
    """A tag.

    offset: the position of its first brace.
    section: the section word of OPEN and CLOSE, and of an ELSE with a condition.
    path: the name in values and sections.
    operands: the operands of a comparison; the argument of a helper, if it has one.
    default: the default of a value.
    name: the helper of a value; the name of a partial.
    parameters: those of a partial.
    """

    kind: TagKind
    offset: int
    section: str = ""
    path: VariablePath = NO_PATH
    operands: tuple[Operand, ...] = ()
    default: str | None = None
    name: str = ""
    parameters: tuple[tuple[str, Operand], ...] = ()


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
            raise syntax_error(source, offset, CodedText("templates_app.too_many_tags", limit=f"{MAX_TAGS:,}"))
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
        raise reader.error(join_sentences(REFUSED[sign], KNOWN_TAGS))
    if sign in READERS:
        reader.accept(sign)
        return READERS[sign](reader)
    start = reader.position
    if reader.read_word() == "else":
        return _read_else(reader)
    reader.position = start
    return _read_value(reader, TagKind.VALUE)


def _read_value(reader: TagReader, kind: TagKind) -> Tag:
    path, helper = reader.read_path(), ""
    operands: tuple[Operand, ...] = ()
    if str(path) in HELPERS and not reader.is_at_end_of_value():
        helper, path = str(path), reader.read_path()
        operands = _read_argument(reader, helper)
    default = _read_default(reader) if reader.accept("|") else None
    reader.expect_close(join_sentences(CodedText("templates_app.one_name"), KNOWN_TAGS))
    return Tag(kind, reader.offset, path=path, operands=operands, default=default, name=helper)


def _read_argument(reader: TagReader, helper: str) -> tuple[Operand, ...]:
    """Read the argument of a helper, if it takes one."""
    if not HELPERS[helper].takes_argument:
        return ()
    argument = reader.read_operand()
    if isinstance(argument, Literal) and (message := check_argument(helper, argument.value)):
        raise reader.error(message)
    return (argument,)


def _read_partial(reader: TagReader) -> Tag:
    """Read the name of a partial, and parameters such as `company=shop.name`."""
    name = reader.read_string() or reader.read_word()
    if not PARTIAL_NAME.fullmatch(name):
        raise reader.error(CodedText("templates_app.partial_name", text=repr(name[:60])))
    parameters: dict[str, Operand] = {}
    while not reader.accept(reader.closing):
        parameter = reader.read_parameter_name()
        if parameter in parameters or len(parameters) == MAX_PARAMETERS:
            raise reader.error(CodedText("templates_app.parameters", limit=MAX_PARAMETERS))
        parameters[parameter] = reader.read_operand()
    return Tag(TagKind.PARTIAL, reader.offset, name=name, parameters=tuple(parameters.items()))


def _read_default(reader: TagReader) -> str:
    default = reader.read_string()
    if default is None:
        raise reader.error(CodedText("templates_app.default_not_quoted"))
    return default


def _read_comment(reader: TagReader) -> Tag:
    # The search starts before the dashes, so {{!--}} is a complete comment.
    has_dashes = reader.source.startswith("--", reader.position)
    reader.skip_past("--}}" if has_dashes else "}}")
    return Tag(TagKind.COMMENT, reader.offset)


def _read_open(reader: TagReader) -> Tag:
    return _read_condition(reader, TagKind.OPEN, _read_section(reader), opening="#")


def _read_else(reader: TagReader) -> Tag:
    """Read the rest of `{{else}}`, or of `{{else if name}}` with any condition."""
    if reader.accept(reader.closing):
        return Tag(TagKind.ELSE, reader.offset)
    section = reader.read_word()
    if section not in CONDITIONS:
        raise reader.error(CodedText("templates_app.else_no_name"))
    return _read_condition(reader, TagKind.ELSE, section, opening="else ")


def _read_condition(reader: TagReader, kind: TagKind, section: str, *, opening: str) -> Tag:
    """Read the name of a section, or the operands of a comparison."""
    tag = f"{{{{{opening}{section}}}}}"
    if section in COMPARISONS:
        operands = reader.read_operand(), reader.read_operand()
        reader.expect_close(CodedText("templates_app.two_operands", tag=tag))
        return Tag(kind, reader.offset, section=section, operands=operands)
    path = reader.read_path()
    reader.expect_close(CodedText("templates_app.section_one_name", tag=tag))
    return Tag(kind, reader.offset, section=section, path=path)


def _read_close(reader: TagReader) -> Tag:
    section = _read_section(reader)
    reader.expect_close(CodedText("templates_app.close_no_name", tag=f"{{{{/{section}}}}}"))
    return Tag(TagKind.CLOSE, reader.offset, section=section)


def _read_section(reader: TagReader) -> str:
    word = reader.read_word()
    if word not in SECTION_WORDS:
        raise reader.error(CodedText("templates_app.not_a_section", text=repr(word[:60])))
    return word


READERS: dict[str, Callable[[TagReader], Tag]] = {
    "!": _read_comment,
    "#": _read_open,
    "/": _read_close,
    ">": _read_partial,
}
