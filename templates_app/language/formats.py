"""Helpers of the template language: numbers, amounts of money and dates in the form of a locale, by Babel.

A value that a helper cannot read is written as it is: an email is not refused for it.
"""

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from core.lib.coded_texts import CodedText

if TYPE_CHECKING:
    from babel import Locale

# Steps of the renderer: a format takes 5 to 8 µs.
FORMAT_STEPS = 10
NUMBER = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?")
MAX_NUMBER = 10**15
CURRENCY = re.compile("[A-Z]{3}")
DATE_STYLES = ("short", "medium", "long", "full")
# A pattern of CLDR: fields of dates and times, other texts in single quotes.
# https://www.unicode.org/reports/tr35/tr35-dates.html#Date_Field_Symbol_Table
DATE_PATTERN = re.compile(
    r"(?=.{1,60}\Z)(?:y{1,4}(?!y)|M{1,5}(?!M)|d{1,2}(?!d)|E{1,5}(?!E)|a|h{1,2}(?!h)|H{1,2}(?!H)|m{1,2}(?!m)|s{1,2}(?!s)"
    r"|'[^']{0,20}'|[^A-Za-z'])+"
)
MAX_DATE_LENGTH = 40
LOCALES_KEPT = 64


@dataclass(frozen=True)
class Helper:
    """A helper of the language.

    takes_argument: whether a currency or a style follows the value.
    format: returns the text of a value, and raises ValueError for another kind of value or argument.
    """

    takes_argument: bool
    format: Callable[[Any, Any, "Locale"], str]


def check_argument(helper: str, argument: Any) -> str:
    """Return what is wrong with an argument that the template itself has, empty if nothing is."""
    if helper == CURRENCY_HELPER:
        return "" if _is_currency(argument) else CodedText("templates_app.currency")
    return "" if _is_style(argument) else CodedText("templates_app.date_style", names=", ".join(DATE_STYLES))


def format_value(helper: str, value: Any, argument: Any, *, locale: str | None) -> str | None:
    """Return the text of a value in a locale, None for a value or an argument that the helper cannot read."""
    if not value and value != 0:
        return None
    try:
        return HELPERS[helper].format(value, argument, _babel_locale(locale or "en"))
    except (ValueError, OverflowError):
        return None


@functools.lru_cache(maxsize=LOCALES_KEPT)
def _babel_locale(tag: str) -> "Locale":
    """Return the locale of a tag, else that of its language, else English."""
    # Loaded at the first use: most processes format nothing.
    from babel import Locale, UnknownLocaleError  # noqa: PLC0415

    for name in (tag, tag.partition("-")[0]):
        try:
            return Locale.parse(name, sep="-")
        except (ValueError, UnknownLocaleError):
            continue
    return Locale("en")


def _format_number(value: Any, _: Any, locale: "Locale") -> str:
    from babel.numbers import format_decimal  # noqa: PLC0415

    return format_decimal(_decimal(value), locale=locale)


def _format_currency(value: Any, currency: Any, locale: "Locale") -> str:
    from babel.numbers import format_currency  # noqa: PLC0415

    if not _is_currency(currency):
        raise ValueError(currency)
    return format_currency(_decimal(value), currency, locale=locale)


def _format_date(value: Any, style: Any, locale: "Locale") -> str:
    from babel.dates import format_date, format_datetime  # noqa: PLC0415

    if not _is_style(style):
        raise ValueError(style)
    found = _datetime(value)
    if style in DATE_STYLES:
        return format_date(found.date(), style, locale=locale)
    return format_datetime(found, style, locale=locale)


def _is_currency(argument: Any) -> bool:
    return isinstance(argument, str) and CURRENCY.fullmatch(argument) is not None


def _is_style(argument: Any) -> bool:
    return isinstance(argument, str) and (argument in DATE_STYLES or DATE_PATTERN.fullmatch(argument) is not None)


def _decimal(value: Any) -> Decimal:
    """Return a number, also one written as text. Raises ValueError for any other value."""
    if isinstance(value, str) and NUMBER.fullmatch(value):
        return Decimal(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < MAX_NUMBER:
        raise ValueError(value)
    return Decimal(str(value))


def _datetime(value: Any) -> datetime:
    """Return the time of a text in ISO 8601, in its own time zone. Raises ValueError for any other value."""
    if not isinstance(value, str) or len(value) > MAX_DATE_LENGTH:
        raise ValueError(value)
    return datetime.fromisoformat(value)


CURRENCY_HELPER = "formatCurrency"
HELPERS = {
    "formatNumber": Helper(takes_argument=False, format=_format_number),
    CURRENCY_HELPER: Helper(takes_argument=True, format=_format_currency),
    "formatDate": Helper(takes_argument=True, format=_format_date),
}
