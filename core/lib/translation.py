"""Coded texts in the language of a page, and the language of a page whose reader has no account."""

import re
from typing import Any

from django.conf import settings
from django.db.models import Choices
from django.http import HttpRequest
from django.utils.formats import number_format
from django.utils.translation import gettext, gettext_lazy
from django.utils.translation.trans_real import parse_accept_lang_header

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


def reader_language(request: HttpRequest) -> str:
    """Return the first of RECIPIENT_LANGUAGES that a browser asks for, or LANGUAGE_CODE."""
    wanted = (code for code, _ in parse_accept_lang_header(request.headers.get("Accept-Language", "")))
    return next((language for code in wanted if (language := known_language(code))), settings.LANGUAGE_CODE)


def known_language(locale: str) -> str:
    """Return the language of a locale such as pt-BR; empty if the pages are not translated into it."""
    language = locale.partition("-")[0]
    return language if language in settings.RECIPIENT_LANGUAGES else ""
