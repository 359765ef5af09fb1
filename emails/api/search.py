"""Find a text among recipients and subjects, whatever of it nearly every email has (docs/decisions/0067).

The index of trigrams reads the list of each trigram that it is asked for. Those of "use" in "user77@corp", or of "com"
anywhere, hold most emails, tell little, and took nearly all of the time. So the index is asked for the other parts
of a text alone, and what it finds is compared with the whole of it.
"""

import re
import time
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from functools import lru_cache

from django.db import connection
from django.db.models import BooleanField, Func, QuerySet, Value
from django.db.models.functions import StrIndex
from django.db.models.lookups import GreaterThan

from emails.models import Email

TRIGRAM = 3
# Leaving one of these out at most doubles what is compared.
COMMON_FREQUENCY = 0.5
COMMON_SECONDS = 600
COMMON = """
SELECT trigram FROM pg_stats_ext_exprs,
       unnest(most_common_elems::text::text[], most_common_elem_freqs) AS found (trigram, frequency)
 WHERE schemaname = ANY(current_schemas(false)) AND statistics_name = 'email_trigrams'
   AND trigram IS NOT NULL AND frequency >= %s
"""
# What pg_trgm takes for a word, in any language: a letter or a digit.
WORD = re.compile(r"[^\W_]+")


def holding(emails: QuerySet[Email], text: str) -> QuerySet[Email]:
    """Return those whose search_text holds the text, taken literally; it must be folded, as that is."""
    parts = telling_parts(text, common=common_trigrams(time.monotonic() // COMMON_SECONDS))
    if not parts:
        return emails.filter(search_text__contains=text)
    pattern = "%".join(["", *map(connection.ops.prep_for_like_query, parts), ""])
    # The whole in another form than LIKE, or the index would be asked for it after all.
    return emails.filter(_Like("search_text", Value(pattern)), GreaterThan(StrIndex("search_text", Value(text)), 0))


class _Like(Func):
    template = "(%(expressions)s)"
    arg_joiner = " LIKE "
    output_field = BooleanField()


def telling_parts(text: str, *, common: AbstractSet[str]) -> list[str]:
    """Return parts of the text, in their order and apart, whose trigrams are not all common.

    Nothing when there is nothing to leave out, or nothing would be left.
    """
    windows = [range(start, start + TRIGRAM) for start in range(len(text) - TRIGRAM + 1)]
    telling = [window for window in windows if not common >= set(_trigrams(text[window.start : window.stop]))]
    if len(telling) == len(windows):
        return []
    parts: list[range] = []
    for window in telling:
        if parts and window.start < parts[-1].stop:
            parts[-1] = range(parts[-1].start, window.stop)
        else:
            parts.append(window)
    return [text[part.start : part.stop] for part in parts]


@lru_cache(maxsize=1)
def common_trigrams(_age: float) -> frozenset[str]:
    """Return the trigrams that so many emails have, by PostgreSQL's own statistics, as they are now and then."""
    with connection.cursor() as cursor:
        cursor.execute(COMMON, [COMMON_FREQUENCY])
        return frozenset(trigram for (trigram,) in cursor.fetchall())


def _trigrams(window: str) -> Iterator[str]:
    """Yield what pg_trgm takes from a part of a text: of the words that begin or end in it with a blank there."""
    for word in WORD.finditer(window):
        begins, ends = word.start() > 0, word.end() < len(window)
        padded = "  " * begins + word.group() + " " * ends
        yield from (padded[start : start + TRIGRAM] for start in range(len(padded) - TRIGRAM + 1))
