"""Lines that introduce, head and sign messages, recognized by the words of quote_patterns.

All lines are in the spelling of `fold`.
"""

import re
from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple

from receiving.reading import quote_patterns as patterns

# The most characters of an introduction, of the name in it, and of a line with a signature.
MAX_INTRODUCTION = 300
MAX_NAME = 100
# The characters at the end of a line without a colon that are searched for a verb.
MAX_END = 30
# The last verbs of an introduction that may be those of its sender.
MAX_VERBS = 3
MAX_SIGNATURE = 120
# Words of a line such as: Get Outlook for iOS
MAX_ADVERTISEMENT = 8

# No-break spaces, direction marks, dashes, colons and apostrophes depend on the mail program.
SPELLINGS = (
    dict.fromkeys(map(ord, "\u00a0\u1680\u2007\u202f\u3000\t\r"), " ")
    | dict.fromkeys((0xAD, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x206A), 0xFEFF))
    # Arabic marks of vowels.
    | dict.fromkeys((0x640, *range(0x64B, 0x653)))
    | dict.fromkeys(range(0x2010, 0x2016), "-")
    | {0xFF1A: ":", 0x2019: "'"}
)


def fold(text: str) -> str:
    """Return a text in the spelling of comparisons."""
    return text.translate(SPELLINGS).casefold()


def _any_of(words: Iterable[str]) -> str:
    return "|".join(re.escape(fold(word)) for word in sorted(words, key=len, reverse=True))


def _is_spaced(word: str) -> bool:
    """Return whether the script of a word has spaces between words: not Thai, Chinese, Japanese and Korean."""
    return not ("\u0e00" <= word[0] <= "\u0e7f" or word[0] >= "\u2e80")


def _initials(words: Iterable[str]) -> str:
    return re.escape("".join(sorted({fold(word)[0] for word in words})))


SPACED = [word for word in patterns.WROTE if _is_spaced(word)]
UNSPACED = [word for word in patterns.WROTE if not _is_spaced(word)]
# The initials make it twice as fast.
WROTE = re.compile(
    rf"(?<!\w)(?=[{_initials(SPACED)}])(?:{_any_of(SPACED)})(?!\w)"
    rf"|(?=[{_initials(UNSPACED)}])(?:{_any_of(UNSPACED)})"
)
BEFORE_NAMES = frozenset(fold(word) for word in patterns.BEFORE_NAMES)
PRONOUNS = frozenset(fold(word) for word in patterns.PRONOUNS)
SECOND_PERSONS = frozenset(fold(word) for word in patterns.SECOND_PERSONS)
BEFORE_SENDERS = re.compile(rf"(?:{_any_of(patterns.BEFORE_SENDERS)})(?!\w)")
CLOCK = re.compile(
    r"(?<!\d)\d{1,2} ?[:h\u6642\u70b9\u65f6] ?\d{2}(?!\d)|(?<![\d.])\d{1,2}\.\d{2}(?![\d.])|(?<!\d)\d{1,2} ?[ap]\.?m\b"
)
DAY = re.compile(r"(?<![a-z\d])\d{4}(?![a-z\d])|(?<!\d)\d{1,2}[./-] ?\d{1,2}[./-] ?\d{2}(?!\d)")
# Digits and the signs between them, so that a part of each text that DAY matches is one of two strings.
SHAPES = dict.fromkeys(map(ord, "123456789"), "0") | dict.fromkeys(map(ord, "./"), "-")
# A digit in one of the first words.
DATED = re.compile(r"\W*(?:[^\W\d]\S* ){0,4}\S{0,3}\d")
ADDRESS = re.compile(r"@[\w-]+(?:\.[\w-]+)+")
AFTER_ADDRESS = re.compile(r"(?:<mailto:[^<>]*>|&gt;|[\[\]()<>\"'*_ ])*:?")
# A time between the address and the colon, perhaps with a time zone.
TIME_AFTER_ADDRESS = re.compile(r"[\W\d]*(?:[a-z]{1,5}\W*)?:")
# The forms of Gmail before 2017 and 2014, which had no colon.
ISO_INTRODUCTION = re.compile(
    r"20\d\d-\d\d-\d\d \d\d:\d\d gmt[+-]\d\d:\d\d \w|20\d\d/\d{1,2}/\d{1,2} [^<>]{1,80}<[^<>@ ]{1,80}@[^<>@ ]{1,80}>?$"
)
EDGES = "-_*>< "
NAME = re.compile(r"-[^\W\d_][\w.']*(?: [^\W\d_][\w.']*){0,2}")
MOBILE = re.compile(r"\bios\b|\bandroid")
LINK = re.compile(r"<https?:[^<>]*>|\(https?:[^()]*\)|https?:\S*|[\[\]]")

DEVICE = re.compile(
    rf"(?<!\w)(?:{_any_of(word[:-1] for word in patterns.DEVICES if word.endswith('*'))}"
    rf"|(?:{_any_of(word for word in patterns.DEVICES if not word.endswith('*'))})(?!\w))"
)
GREETING = re.compile(
    rf"(?:{_any_of(patterns.GREETINGS.split('|'))})"
    r"(?: [^\W\d_][^\s,.;:!?]*){0,3} ?[,!:.\u060c\uff0c]?"
)


def _signatures(templates: Iterable[str]) -> "re.Pattern[str]":
    """Return an expression for lines of mail programs below a text, with an excuse for typos behind them."""
    escaped = [re.escape(fold(template)) for template in templates]
    texts = [row.replace(r"\*", "[^.,;:!?]{1,60}").replace("@", "[^,;!?]{1,80}") for row in escaped]
    return re.compile(rf"[<( ]*(?:{'|'.join(texts)})[>). ]*(?:[.,;!]+ *(?:{_any_of(patterns.EXCUSES)}).*)?")


OF_DEVICES = _signatures(row for row in patterns.SIGNATURES if "@" not in row)
OF_KNOWN_DEVICES = _signatures(row for row in patterns.SIGNATURES if "@" in row)


def is_timed(text: str) -> bool:
    """Return whether a line has a date and a time of the day."""
    return bool(DAY.search(text) and CLOCK.search(text))


def rank(text: str) -> int:
    """Return the rank of a text among those that may be an introduction: whether a date is at its beginning."""
    if not DATED.match(text):
        return 2
    return 0 if DAY.search(text) else 1


def is_greeting(line: str) -> bool:
    """Return whether a line is a greeting alone."""
    return bool(GREETING.fullmatch(line))


def is_signature(line: str, *, is_isolated: bool) -> bool:
    """Return whether a mail program or device added a line below the text, such as: Sent from my iPhone

    is_isolated: whether the line above is empty. Without "my", the sentence might be one of the text.
    """
    if not 0 < len(line) <= MAX_SIGNATURE:
        return False
    # Most lines have no links.
    text = LINK.sub(" ", line).strip() if "http" in line or "[" in line or "]" in line else line.strip()
    is_advertisement = "http" in line and "outlook" in text and bool(MOBILE.search(text))
    if OF_DEVICES.fullmatch(text) or (is_advertisement and len(text.split()) <= MAX_ADVERTISEMENT):
        return True
    return is_isolated and bool(OF_KNOWN_DEVICES.fullmatch(text) and DEVICE.search(text))


def is_name(line: str) -> bool:
    """Return whether a line is a name behind a dash, such as: -Ada Lovelace"""
    return bool(NAME.fullmatch(line.strip())) and line.strip("- ").istitle()


class Signs(NamedTuple):
    """Signs of an introduction in a line."""

    has_words: bool = False
    has_address: bool = False
    has_time: bool = False


def may_have_introductions(text: str) -> bool:
    """Return whether a text without quoted lines may have introductions: cheap, for whole texts.

    They have a date or an address, or are above a line that begins with a bar (docs/decisions/0360).
    """
    if "@" in text or "|" in text or not text.isascii():
        return True
    shapes = text.translate(SHAPES)
    return "0000" in shapes or "0-" in shapes


def may_end_introduction(line: str) -> bool:
    """Return whether a line may be the last one of an introduction: cheap, for all lines."""
    if not 0 < len(line) <= MAX_INTRODUCTION:
        return False
    end = line.rstrip("-_* ")
    if end.endswith((":", ">")) or ISO_INTRODUCTION.match(line):
        return True
    return bool(WROTE.search(end, max(len(end) - MAX_END, 0)))


def find_signs(line: str) -> Signs:
    """Return the signs of an introduction in a line; for those near a possible end of one."""
    if not 0 < len(line) <= MAX_INTRODUCTION:
        return Signs()
    has_words = bool(WROTE.search(line) or BEFORE_SENDERS.match(line) or ISO_INTRODUCTION.match(line))
    return Signs(has_words, "@" in line, bool(DAY.search(line) or CLOCK.search(line)))


class Strength(IntEnum):
    """What makes a text an introduction: nothing, a quote below it, or its words alone."""

    NONE = 0
    ABOVE_QUOTE = 1
    ALONE = 2


def introduction_strength(text: str) -> Strength:
    """Return whether a text introduces a quote, such as: On Wed, Aug 5, 2026 at 7:35 AM Shop wrote:"""
    line = text.rstrip(". ").strip(EDGES)
    verbs = list(WROTE.finditer(line))[-MAX_VERBS:]
    address = ADDRESS.search(line)
    is_ended = line.endswith(":")
    names = [line[verb.end() :].strip(": ") for verb in verbs]
    wrote = [
        verb[0]
        for verb, name in zip(verbs, names, strict=True)
        if not name or (is_ended and _is_behind_verb(name, verb[0]))
    ]
    if not wrote:
        return Strength.NONE if verbs else _nameless_strength(line, address)
    if any(_is_prose(line, verb) for verb in verbs):
        return Strength.ABOVE_QUOTE
    if any(verb in SECOND_PERSONS for verb in wrote) and DAY.search(line):
        return Strength.ALONE
    if is_timed(line) or (address and is_ended and _is_bracketed(line)):
        return Strength.ALONE
    return Strength.ABOVE_QUOTE if address or len(line) <= MAX_NAME else Strength.NONE


def _is_behind_verb(text: str, verb: str) -> bool:
    """Return whether a text between the verb and the colon of an introduction is a name, an address or a time."""
    return (verb in BEFORE_NAMES and len(text) <= MAX_NAME) or is_timed(text) or bool(ADDRESS.search(text))


def _is_prose(line: str, verb: "re.Match[str]") -> bool:
    """Return whether a pronoun is next to a verb, as in: On 5 May at 10:00 she wrote:"""
    return bool({*line[: verb.start()].split()[-1:], *line[verb.end() :].split()[:1]} & PRONOUNS)


def _is_bracketed(line: str) -> bool:
    before = line[: line.find("@")]
    return max(map(before.rfind, "<([")) > before.rfind(" ") - 2 or "&lt;" in before


def _nameless_strength(line: str, address: "re.Match[str] | None") -> Strength:
    """Return the strength of a text without "wrote": a time and an address in front of the colon."""
    ends_with_address = address is not None and bool(AFTER_ADDRESS.fullmatch(line, _last_address(line)))
    is_dated = bool(DATED.match(line))
    if not line.endswith(":"):
        if ISO_INTRODUCTION.match(line):
            return Strength.ALONE
        return Strength.ABOVE_QUOTE if ends_with_address and is_dated else Strength.NONE
    if address and (
        BEFORE_SENDERS.match(line) or (is_timed(line) and TIME_AFTER_ADDRESS.fullmatch(line, address.end()))
    ):
        return Strength.ALONE
    if ends_with_address and is_dated and (DAY.search(line) or CLOCK.search(line)):
        return Strength.ALONE
    # In another language, with a name alone.
    return Strength.ABOVE_QUOTE if is_timed(line) else Strength.NONE


def _last_address(line: str) -> int:
    """Return the end of the last address that is not a link to it."""
    ends = [found.end() for found in ADDRESS.finditer(line) if "<mailto:" not in line[: found.start()][-80:]]
    return ends[-1] if ends else len(line)
