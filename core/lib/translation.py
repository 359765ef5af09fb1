"""Coded texts in the language of a page."""

import re
from typing import Any

from django.db.models import Choices
from django.utils.formats import number_format
from django.utils.translation import gettext, gettext_lazy

from core.lib.coded_texts import CodedText

NUMBER = re.compile(r"\d{1,3}(,\d{3})*(\.\d+)?")


def translate(text: str) -> str:
    """Return a message in the active language, as a plain text; any other text unchanged."""
    if not isinstance(text, CodedText):
        return text
    values = {name: _translate_value(value) for name, value in text.values.items()}
    return gettext(text.text_code) % values


def translated_choices(choices: type[Choices]) -> list[tuple[Any, Any]]:
    """Return the choices of a model field with labels in the active language."""
    return [(value, gettext_lazy(label)) for value, label in choices.choices]


def _translate_value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(gettext, value))
    if NUMBER.fullmatch(value):
        return number_format(value.replace(",", ""), force_grouping=True)
    return translate(value)
