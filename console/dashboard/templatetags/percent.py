"""Percentages with one rounding on all pages (docs/decisions/0394)."""

from django import template
from django.utils.formats import number_format
from django.utils.translation import gettext_lazy

PERCENT = gettext_lazy("%(number)s%%")
register = template.Library()


def rate_text(percent: float) -> str:
    """Return a percentage with up to two decimals, in the language of the page."""
    return number_format(f"{percent:.2f}".rstrip("0").rstrip("."))


@register.filter(name="percent")
def percent_text(percent: float | None) -> str:
    """Return a percentage with its sign, as each page writes it; a dash for None."""
    return "–" if percent is None else str(PERCENT) % {"number": rate_text(percent)}  # noqa: RUF001 - as in tables
