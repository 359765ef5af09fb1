"""Locales of templates and emails: language tags of BCP 47, such as `de-AT`, and the order of their look-up."""

import functools
import re
from collections.abc import Iterable

MAX_LENGTH = 35
# Language, script, region and variants (RFC 5646, section 2.1). Programs also write `de_AT`.
LOCALE = re.compile(r"[A-Za-z]{2,8}(?:[-_][A-Za-z0-9]{1,8}){0,7}")
SCRIPT_LENGTH, REGION_LENGTH = 4, 2
LOCALES_KEPT = 256


@functools.lru_cache(maxsize=LOCALES_KEPT)
def normalize_locale(text: str) -> str:
    """Return a tag in its usual case, such as `zh-Hant-TW`. Raises ValueError for a text that is none."""
    if len(text) > MAX_LENGTH or not LOCALE.fullmatch(text):
        raise ValueError(text)
    language, *others = text.replace("_", "-").split("-")
    return "-".join([language.lower(), *map(_usual_case, others)])


def locale_chain(locales: Iterable[str]) -> tuple[str, ...]:
    """Return the locales in the order in which they are looked up: `de-AT`, `de` (RFC 4647, section 3.4)."""
    chain: dict[str, None] = {}
    for locale in locales:
        parts = locale.split("-")
        chain |= dict.fromkeys("-".join(parts[:length]) for length in range(len(parts), 0, -1))
    return tuple(chain)


def _usual_case(subtag: str) -> str:
    if len(subtag) == SCRIPT_LENGTH and subtag.isalpha():
        return subtag.title()
    return subtag.upper() if len(subtag) == REGION_LENGTH else subtag.lower()
