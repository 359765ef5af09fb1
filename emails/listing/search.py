"""Substring search in recipients and subjects, fast even with very common trigrams (docs/decisions/0067).

The trigram index reads the posting list of every trigram in the query. The list of "use" in "user77@corp", or of
"com", contains most emails: it is not selective and takes most of the time. So the index is queried for the selective
parts of the text only, and the matches are compared with the whole text.
"""

import re
import time
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from functools import lru_cache

from django.db import connection
from django.db.models import BooleanField, Func, QuerySet, Value
from django.db.models.functions import StrIndex
from django.db.models.lookups import GreaterThan

from core.lib.ids import from_any_spelling, is_id
from emails.models import Email

TRIGRAM = 3
# Omitting a trigram this common at most doubles the rows to compare.
COMMON_FREQUENCY = 0.5
COMMON_SECONDS = 600
TRIGRAMS = f"""
SELECT trigram, frequency FROM pg_stats_ext_exprs,
       unnest(most_common_elems::text::text[], most_common_elem_freqs) AS found (trigram, frequency)
 WHERE schemaname = ANY(current_schemas(false)) AND statistics_name = 'email_trigrams'
   AND trigram IS NOT NULL AND frequency >= {COMMON_FREQUENCY}
"""  # noqa: S608 - a constant
TAGS = """
SELECT tag, frequency * pg_class.reltuples
  FROM pg_stats, unnest(most_common_elems::text::text[], most_common_elem_freqs) AS found (tag, frequency), pg_class
 WHERE schemaname = ANY(current_schemas(false)) AND tablename = 'emails_email' AND attname = 'tags'
   AND pg_class.oid = 'emails_email'::regclass AND tag IS NOT NULL
"""
# A word to pg_trgm, in any language: alphanumeric characters.
WORD = re.compile(r"[^\W_]+")


def filter_by_text(emails: QuerySet[Email], text: str) -> QuerySet[Email]:
    """Filter emails by a literal substring of search_text. The text must be case-folded, like search_text."""
    # strpos never uses the index. LIKE would use it also without a trigram, and read it as a whole.
    contains = GreaterThan(StrIndex("search_text", Value(text)), 0)
    if not has_trigrams(text):
        return emails.filter(contains)
    parts = selective_parts(text, common=common_trigrams())
    if not parts:
        return emails.filter(search_text__contains=text)
    pattern = "%".join(["", *map(connection.ops.prep_for_like_query, parts), ""])
    # A second LIKE would query the index for all trigrams of the text.
    return emails.filter(_Like("search_text", Value(pattern)), contains)


def filter_by_id(emails: QuerySet[Email], text: str) -> QuerySet[Email]:
    """Filter emails by an id in either spelling; none for any other text."""
    email_id = from_any_spelling(text.strip())
    return emails.filter(pk=email_id) if is_id(email_id) else emails.none()


def has_trigrams(text: str) -> bool:
    """Return whether the index has entries for a text: three characters of a word, or the beginning or end of one."""
    return any(_trigrams(text))


class _Like(Func):
    template = "(%(expressions)s)"
    arg_joiner = " LIKE "
    output_field = BooleanField()


def selective_parts(text: str, *, common: AbstractSet[str]) -> list[str]:
    """Return the parts of the text whose trigrams are not all common, in order and without overlap.

    Returns an empty list if every part is selective, or none is.
    """
    windows = [range(start, start + TRIGRAM) for start in range(len(text) - TRIGRAM + 1)]
    selective = [window for window in windows if not common >= set(_trigrams(text[window.start : window.stop]))]
    if len(selective) == len(windows):
        return []
    parts: list[range] = []
    for window in selective:
        if parts and window.start < parts[-1].stop:
            parts[-1] = range(parts[-1].start, window.stop)
        else:
            parts.append(window)
    return [text[part.start : part.stop] for part in parts]


def common_trigrams() -> AbstractSet[str]:
    """Return the common trigrams."""
    return _statistics(TRIGRAMS, time.monotonic() // COMMON_SECONDS).keys()


def common_tags() -> Mapping[str, float]:
    """Return the common tags of all workspaces, with about as many emails as each has."""
    return _statistics(TAGS, time.monotonic() // COMMON_SECONDS)


@lru_cache(maxsize=2)
def _statistics(sql: str, _age: float) -> dict[str, float]:
    """Return texts and numbers from PostgreSQL's statistics; cached for COMMON_SECONDS."""
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return dict(cursor.fetchall())


def _trigrams(window: str) -> Iterator[str]:
    """Yield the trigrams that pg_trgm extracts from part of a text; words that begin or end inside it are padded."""
    for word in WORD.finditer(window):
        begins, ends = word.start() > 0, word.end() < len(window)
        padded = "  " * begins + word.group() + " " * ends
        yield from (padded[start : start + TRIGRAM] for start in range(len(padded) - TRIGRAM + 1))
