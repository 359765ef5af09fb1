"""Coded texts in the language of a page."""

import re
from typing import Any

from django.utils.formats import number_format
from django.utils.translation import gettext

from lib.coded_texts import CodedText

NUMBER = re.compile(r"\d{1,3}(,\d{3})*(\.\d+)?")


def translate(text: str) -> str:
    """Return a message in the active language, as a plain text; any other text unchanged."""
    if not isinstance(text, CodedText):
        return text
    values = {name: _translate_value(value) for name, value in text.values.items()}
    return gettext(text.text_code) % values


def _translate_value(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(map(gettext, value))
    if NUMBER.fullmatch(value):
        return number_format(value.replace(",", ""), force_grouping=True)
    return translate(value)
