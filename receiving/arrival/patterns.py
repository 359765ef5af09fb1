"""Patterns of local parts: globs of literals, `*` and `?`, in lower case."""

import functools
import re

MAX_LENGTH = 64
MAX_STARS = 3
# The characters of a local part without quotes (RFC 5322), and the wildcards; `*` and `?` as literals do not exist.
PATTERN = re.compile(r"[a-z0-9!#$%&'+/=^_`{|}~.*?\u0080-\U0010ffff-]+")


class InvalidPattern(ValueError):
    """Raised for a text that is not a pattern."""


def parse_pattern(text: str) -> str:
    """Return a pattern in lower case. Raises InvalidPattern."""
    pattern = text.lower()
    is_valid = PATTERN.fullmatch(pattern) and len(pattern) <= MAX_LENGTH and pattern.count("*") <= MAX_STARS
    if not is_valid:
        raise InvalidPattern(text)
    return pattern


def count_literals(pattern: str) -> int:
    """Return the number of literal characters: of two patterns, the one with more is more specific."""
    return sum(character not in "*?" for character in pattern)


def matches(pattern: str, local_part: str) -> bool:
    """Return whether a local part in lower case matches. At most MAX_STARS stars and 64 characters: no long search."""
    return len(local_part) <= MAX_LENGTH and _compiled(pattern).fullmatch(local_part) is not None


@functools.lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    parts = {"*": ".*", "?": "."}
    return re.compile("".join(parts.get(character) or re.escape(character) for character in pattern), re.DOTALL)
