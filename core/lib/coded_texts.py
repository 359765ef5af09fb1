"""Messages for people: a code and values where a fact is found, rendered in English and in the language of a page.

A code names the package of the fact: "domains.not_verified". It is the key of the text in the catalogues of all
languages, English too: locale/*/LC_MESSAGES/django.po. See docs/decisions/0158.
"""

import re
from collections.abc import Mapping
from gettext import translation
from pathlib import Path
from typing import Any, Self

# Values may quote untrusted bytes: PostgreSQL's JSON rejects NUL, and terminals interpret the others.
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")
# Read without Django, whose catalogues need all apps: texts are made before, too.
ENGLISH = translation("django", Path(__file__).parents[2] / "locale", ["en"])


class CodedText(str):
    """A message as its English text, with the code and values from which `core.lib.translation.translate` renders it.

    A value is a text that stays as it is, a number as written in English, another message, or a list of words of the
    API, which are translated one by one. Raises LookupError for an unknown code or a missing value.
    """

    __slots__ = ("text_code", "values")
    text_code: str
    values: Mapping[str, Any]

    def __new__(cls, code: str, **values: Any) -> Self:
        kept = {name: _keep_value(value) for name, value in values.items()}
        texts = {name: ", ".join(value) if isinstance(value, list) else value for name, value in kept.items()}
        message = super().__new__(cls, _english(code) % texts)
        message.text_code, message.values = code, kept
        return message

    def __str__(self) -> str:
        # So that str() of an exception returns the message, not a copy of its text.
        return self

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, Any]]:
        return (self.text_code,), dict(self.values)

    def to_json(self) -> dict[str, Any]:
        """Return the form that `restore_text` reads."""
        values = {
            name: value.to_json() if isinstance(value, CodedText) else value for name, value in self.values.items()
        }
        return {"code": self.text_code, "values": values}


def restore_text(stored: Mapping[str, Any] | None, *, text: str = "") -> str:
    """Return a stored message; the text instead if there is none, or only one of another version."""
    if not stored:
        return text
    try:
        values = {
            name: restore_text(value) if isinstance(value, dict) else value for name, value in stored["values"].items()
        }
        return CodedText(stored["code"], **values)
    except LookupError:
        return text


def join_sentences(*messages: str) -> str:
    """Return the messages that are not empty, one after another, as one message."""
    first, *others = [message for message in messages if message] or [""]
    return CodedText("lib.sequence", first=first, others=join_sentences(*others)) if others else first


def escape_controls(text: str) -> str:
    """Return a text with its control characters, except for line feeds, as hexadecimal escapes."""
    return CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def _keep_value(value: Any) -> str | list[str]:
    """Return a value as it is stored; that of an exception is its message."""
    if isinstance(value, list):
        return [str(word) for word in value]
    text = str(value)
    return text if isinstance(text, CodedText) else escape_controls(text)


def _english(code: str) -> str:
    text = ENGLISH.gettext(code)
    if text == code:
        raise LookupError(code)
    return text
