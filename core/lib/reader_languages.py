"""The language of a page behind a link in an email: its reader has no account (docs/decisions/0126)."""

from django.conf import settings
from django.http import HttpRequest
from django.utils.translation.trans_real import parse_accept_lang_header


def reader_language(request: HttpRequest) -> str:
    """Return the first of RECIPIENT_LANGUAGES that a browser asks for, or LANGUAGE_CODE."""
    wanted = (code for code, _ in parse_accept_lang_header(request.headers.get("Accept-Language", "")))
    return next((language for code in wanted if (language := known_language(code))), settings.LANGUAGE_CODE)


def known_language(locale: str) -> str:
    """Return the language of a locale such as pt-BR; empty if the pages are not translated into it."""
    language = locale.partition("-")[0]
    return language if language in settings.RECIPIENT_LANGUAGES else ""
