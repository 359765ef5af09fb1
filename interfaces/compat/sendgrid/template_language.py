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
HELPER = re.compile(r"(?<!\\)\{\{\{?\s*#?\s*(?P<name>formatDate|length)\s")
NESTED = re.compile(r"(?<!\\)\{\{#?(?!\s*!)[^{}\"']{0,500}\(\s*(?P<name>\w{1,50})\s")
# A line with nothing but one tag of a section, or a comment.
TAG_LINE = re.compile(r"^[ \t]*(\{\{(?:[#/!]|\s*else\b)[^{}]*\}\})[ \t]*(?:\r?\n|\Z)", re.MULTILINE)
REPLACEMENTS = {"formatDate": "Format the date in your application, and pass it as a text."}
EXPRESSIONS = "Compute the value in your application."


def translate(text: Any, *, field: str) -> Any:
    """Return a text of a template in the language of Postrider; any other value unchanged. Raises InvalidFields."""
    if not isinstance(text, str):
        return text
    text = RAW_VALUE.sub(r"{{{\1}}}", TAG.sub(_translate_pieces, _without_marked_space(text)))
    text = LENGTH.sub(r"\g<open>\g<name>.length", text)
    if helper := HELPER.search(text) or NESTED.search(text):
        line = text.count("\n", 0, helper.start()) + 1
        replacement = REPLACEMENTS.get(helper["name"], EXPRESSIONS)
        raise invalid_field(field, f"Line {line}: {helper['name']} is not supported here. {replacement}")
    return INSERT.sub(_with_default, with_unsubscribe_links(text))


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
