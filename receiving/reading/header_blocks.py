"""Header blocks above quoted messages, and the separators in front of them.

All lines are in the spelling of `receiving.reading.introductions.fold`.
"""

import re
from collections import defaultdict
from collections.abc import Sequence

from receiving.reading import quote_patterns as patterns
from receiving.reading.introductions import CLOCK, MAX_INTRODUCTION, fold, is_timed

# Labels that are enough without a separator.
MIN_LABELS = 3
MAX_LABEL = 30
# Characters of lines between parts of a text. The last one is that of a tracking extension.
RULES = "-_=*~#+. \u1427"
DASHES = "-_=*~#"
LABELLED = re.compile(r"\*?[^\W\d][^:\d]{0,24}:")


def _words(text: str) -> list[str]:
    return [fold(word.strip()) for word in text.replace("\n", ";").split(";") if word.strip()]


def _read_labels() -> dict[str, tuple[tuple[str, str], ...]]:
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for language, labels in patterns.LABELS.items():
        for kind, words in zip(patterns.KINDS_OF_LABELS, labels.split(";"), strict=False):
            for word in words.split(","):
                found[fold(word.strip())][language] = kind
    return {word: tuple(kinds.items()) for word, kinds in found.items()}


KINDS_BY_LABEL = _read_labels()
SEPARATORS = tuple(_words(patterns.SEPARATORS))
FORWARDS = frozenset(fold(word) for word in patterns.FORWARDS)


def kinds_of(line: str) -> tuple[tuple[str, str], ...]:
    """Return the languages and kinds of the label of a line."""
    label, colon, _ = line[: MAX_LABEL + 1].partition(":")
    return KINDS_BY_LABEL.get(label.strip(" *_|-"), ()) if colon else ()


def is_plain(line: str) -> bool:
    """Return whether a line is neither a separator nor a rule: cheap, for all lines."""
    return line[:1].isalpha() and line[0] not in RULES and line[-1] != ">" and line.rstrip(" :") not in FORWARDS


def is_separator(line: str) -> bool:
    """Return whether a line is a text between dashes above an earlier message, such as: --- Original Message ---"""
    # GroupWise writes: >>> Shop <shop@example.com> 05.08.2026 07:35 >>>
    if line.endswith(">>>") and is_timed(line[-MAX_INTRODUCTION:]):
        return True
    # Some devices write HTML into texts.
    text = line.removeprefix("<div>")
    if text[:2].strip(DASHES):
        return text.rstrip(" :") in FORWARDS
    return text.strip(RULES).startswith(SEPARATORS)


def is_between_rules(line: str) -> bool:
    """Return whether a text is between dashes, whatever it says."""
    return not (line[:2] + line[-2:]).strip(DASHES)


def is_header(values: dict[str, str], fewest: int) -> bool:
    """Return whether labelled lines of one language are the header of a message, and not of a form. values: by kind."""
    kinds = {kind for kind, value in values.items() if kind != "date" or any(map(str.isdigit, value))} - {"other"}
    if "from" not in kinds:
        return False
    if fewest < MIN_LABELS:
        return len(kinds) >= fewest
    has_sender, has_recipient = "@" in values["from"], "@" in values.get("to", "")
    if CLOCK.search(values.get("date", "")):
        return has_sender or (len(kinds) >= MIN_LABELS and (has_recipient or "subject" in kinds))
    return has_sender and has_recipient


def has_address_and_time(values: Sequence[str]) -> bool:
    """Return whether labelled lines in any language are the header of a message: they have an address and a time."""
    return len(values) >= MIN_LABELS and any("@" in value for value in values) and any(map(is_timed, values))
