"""Dynamic templates of SendGrid, which use Handlebars with helpers, in the template language of Postrider.

Most of it is the same in both languages (docs/decisions/0192). `{{insert}}` has another form here, and helpers without
an equivalent are refused by their names.
See https://www.twilio.com/docs/sendgrid/for-developers/sending-email/using-handlebars.
"""

import re
from typing import Any

from core.delivery.message.footer import UNSUBSCRIBE_PLACEHOLDER
from core.delivery.message.unsubscribe_places import BLANKS, TAG_END, TAG_START, any_spelling
from interfaces.compat.errors import invalid_field

# Places of the unsubscribe link, and of the page with all groups, as they are or encoded by an editor.
# https://www.twilio.com/docs/sendgrid/ui/sending-email/create-and-manage-unsubscribe-groups
UNSUBSCRIBE_TAG = re.compile(
    rf"{TAG_START}(?:unsubscribe|unsubscribe_preferences){TAG_END}"
    rf"|{any_spelling('<%')}{BLANKS}"
    rf"(?:asm_group_unsubscribe|asm_preferences|asm_global_unsubscribe)_(?:raw_)?url{BLANKS}{any_spelling('%>')}"
)
NAME = r"[\w./@-]{1,255}"
# A value with a default: `{{insert name "default=Customer"}}`.
INSERT = re.compile(
    rf"""(?<!\\)(?P<open>\{{\{{\{{?)\s*insert\s+(?P<name>{NAME})"""
    r"""(?:\s+(?P<quote>["'])(?:default=)?(?P<default>(?:(?!(?P=quote))[^\\{}]){0,2000})(?P=quote))?\s*(?=\}\})"""
)
# The length of a list: `{{length items}}`.
LENGTH = re.compile(rf"(?<!\\)(?P<open>\{{\{{\{{?)\s*length\s+(?P<name>{NAME})\s*(?=\}}\}})")
TAG = re.compile(r"(?<!\\)\{\{(?!\s*!)[^{}]{0,1000}\}\}")
# In a tag: a text, which stays; `(length items)`, `[name]`, the scope `.` and names that begin with it.
PIECE = re.compile(
    rf"""(?P<text>"[^"]*"|'[^']*')|\(\s*length\s+(?P<counted>{NAME})\s*\)|\[(?P<name>[\w-]{{1,255}})\]"""
    r"|(?<![\w./\]])(?:(?P<here>\./(?=[\w\[]))|(?P<this>\.)(?![\w./]))"
)
RAW_VALUE = re.compile(r"(?<!\\)\{\{\s*&\s*([^{}]{1,300})\}\}")
# A date with a fixed pattern, and no offset: `{{formatDate sent "MMMM DD, YYYY"}}`.
DATE = re.compile(
    rf"""(?<!\\)(?P<open>\{{\{{\{{?)\s*formatDate\s+(?P<name>{NAME})\s+(?P<quote>["'])(?P<pattern>[^"'{{}}\\]{{1,60}})(?P=quote)"""
    r"""\s*(?=\}\})"""
)
# The parts of SendGrid's patterns in those of CLDR. https://www.twilio.com/docs/sendgrid/for-developers/sending-email/using-handlebars
DATE_PARTS = {
    "YYYY": "yyyy", "YY": "yy", "MMMM": "MMMM", "MMM": "MMM", "MM": "MM", "M": "M", "DD": "dd", "D": "d",
    "dddd": "EEEE", "ddd": "EEE", "HH": "HH", "H": "H", "hh": "hh", "h": "h", "mm": "mm", "m": "m", "ss": "ss",
    "s": "s", "A": "a",
}  # fmt: skip
DATE_PART = re.compile(r"[A-Za-z]+|[^A-Za-z]+")
HELPER = re.compile(r"(?<!\\)\{\{\{?\s*#?\s*(?P<name>formatDate|length)\s")
NESTED = re.compile(r"(?<!\\)\{\{#?(?!\s*!)[^{}\"']{0,500}\(\s*(?P<name>\w{1,50})\s")
# A line with nothing but one tag of a section, or a comment.
TAG_LINE = re.compile(r"^[ \t]*(\{\{(?:[#/!]|\s*else\b)[^{}]*\}\})[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
REPLACEMENTS = {"formatDate": 'Write a pattern such as "YYYY-MM-DD" without an offset, or pass the date as a text.'}
EXPRESSIONS = "Compute the value in your application."


def translate(text: Any, *, field: str) -> Any:
    """Return a text of a template in the language of Postrider; any other value unchanged. Raises InvalidFields."""
    if not isinstance(text, str):
        return text
    text = RAW_VALUE.sub(r"{{{\1}}}", TAG.sub(_translate_pieces, _without_marked_space(text)))
    text = LENGTH.sub(r"\g<open>\g<name>.length", text)
    others = DATE.sub(_without_fixed_pattern, text)
    if helper := HELPER.search(others) or NESTED.search(others):
        line = others.count("\n", 0, helper.start()) + 1
        replacement = REPLACEMENTS.get(helper["name"], EXPRESSIONS)
        raise invalid_field(field, f"Line {line}: {helper['name']} is not supported here. {replacement}")
    return INSERT.sub(_with_default, with_unsubscribe_links(DATE.sub(_with_pattern, text)))


def without_tag_lines(text: Any) -> Any:
    """Return a text whose section tags leave no empty lines, as in Handlebars; any other value unchanged.

    https://handlebarsjs.com/guide/expressions.html#whitespace-control. See docs/decisions/0192.
    """
    return TAG_LINE.sub(r"\1", text) if isinstance(text, str) else text


def with_unsubscribe_links(text: str) -> str:
    """Return a text with the places of the unsubscribe link in the form of Postrider."""
    return UNSUBSCRIBE_TAG.sub(UNSUBSCRIBE_PLACEHOLDER, text)


def _with_default(tag: re.Match[str]) -> str:
    default = "" if tag["default"] is None else f"|{tag['quote']}{tag['default']}{tag['quote']}"
    return f"{tag['open']}{tag['name']}{default}"


def _without_fixed_pattern(tag: re.Match[str]) -> str:
    """Return the tag of a date if its pattern has parts without an equivalent, else only its line breaks."""
    is_fixed = all(part in DATE_PARTS or not part.isalpha() for part in DATE_PART.findall(tag["pattern"]))
    return "\n" * tag[0].count("\n") if is_fixed else tag[0]


def _with_pattern(tag: re.Match[str]) -> str:
    """Return a date with a pattern of CLDR."""
    pattern = "".join(DATE_PARTS.get(part, part) for part in DATE_PART.findall(tag["pattern"]))
    return f'{tag["open"]}formatDate {tag["name"]} "{pattern}"'


def _without_marked_space(text: str) -> str:
    """Return a text without the space beside `{{~` and `~}}`."""
    *before, last = text.split("{{~")
    first, *after = "{{".join([*(piece.rstrip() for piece in before), last]).split("~}}")
    return "}}".join([first, *(piece.lstrip() for piece in after)])


def _translate_pieces(tag: re.Match[str]) -> str:
    return PIECE.sub(_translate_piece, tag[0])


def _translate_piece(piece: re.Match[str]) -> str:
    if piece["counted"]:
        return f"{piece['counted']}.length"
    if piece["this"]:
        return "this"
    return piece["text"] or piece["name"] or ""
