"""Quotes: the text of a message without the earlier messages that it quotes (docs/decisions/0316)."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

from receiving.reading.header_blocks import (
    LABELLED,
    MIN_LABELS,
    RULES,
    has_address_and_time,
    is_between_rules,
    is_header,
    is_plain,
    is_separator,
    kinds_of,
)
from receiving.reading.introductions import (
    MAX_INTRODUCTION,
    Signs,
    Strength,
    find_signs,
    fold,
    introduction_strength,
    is_greeting,
    is_name,
    is_signature,
    may_end_introduction,
    may_have_introductions,
    rank,
)
from receiving.reading.quoted_html import quoted_text

# The text in which quotes are looked for.
MAX_LENGTH = 64 * 1024
MAX_LINES = 2_000
MAX_INTRODUCTION_LINES = 5
# Texts that are examined as introductions. Those of a message with signs of one are a few.
MAX_EXAMINATIONS = 100
# Lines of a header block, and those in a row without a label: long lists of recipients are wrapped.
MAX_HEADER_LINES = 40
MAX_UNLABELLED = 2
# Forwarded messages without a note, within each other.
MAX_FORWARDS = 3
# Unquoted lines below a quote that are an answer. Fewer are a signature, or the rest of the quoted message.
ANSWER_LINES = 7
LINE_LENGTH = 80
# A line that a mail program wrapped has at least this length.
WRAPPED_LENGTH = 60
RULE_LENGTH = 5
OUTLOOK_RULE = "_" * 32
FOOTER_LINES = 8

FENCE = "```"


def find_reply(text: str) -> str | None:
    """Return the text without quoted messages; None if nothing is left or the text is too long to judge."""
    start = text[:MAX_LENGTH]
    if not start.strip() or start.count("\n") > MAX_LINES:
        return None
    return _without_name(_Lines(start).reply()) or None


def find_reply_in_html(html: str, text: str) -> str | None:
    """Return the text of HTML without quoted messages. text: all of it, for HTML without marks of quotes."""
    return find_reply(quoted_text(html) or text)


class _Mark(NamedTuple):
    """The lines in front of a quoted message. is_header: a header or a separator, which has no answers below it."""

    start: int
    end: int
    is_header: bool


@dataclass(frozen=True)
class _Run:
    """Lines of one kind. is_quote: whether they are quoted."""

    start: int
    end: int
    is_quote: bool


class _Lines:
    """The lines of a text.

    folded: the same lines for comparisons. Lines of code are equal to nothing.
    bare: folded lines without the marks of a quote.
    """

    def __init__(self, text: str) -> None:
        self.lines = text.split("\n")
        self.folded = [line.strip() for line in fold(text).split("\n")]
        self._hide_code()
        self.is_quoted = list(self._find_quoted())
        self.bare = [line.lstrip("> ") for line in self.folded]
        self.labels = [kinds_of(line) for line in self.bare]
        self.has_introductions = any(self.is_quoted) or may_have_introductions("\n".join(self.folded))
        self._may_end = dict[int, bool]()
        self._signs = dict[int, Signs]()
        self.dropped: set[int] = set()
        self.examinations = MAX_EXAMINATIONS
        self.no_header_before = 0

    def _hide_code(self) -> None:
        fences = [number for number, line in enumerate(self.folded) if line.startswith(FENCE)]
        for opening, closing in zip(fences[::2], fences[1::2], strict=False):
            for number in range(opening, closing + 1):
                self.folded[number] = "code"

    def _find_quoted(self) -> Iterator[bool]:
        """Yield whether each line is quoted. A ">" that closes the address of an introduction is no mark."""
        unclosed = 0
        for line in self.folded:
            is_quoted = line.startswith(">") and unclosed <= 0
            if is_quoted or not line:
                unclosed = 0
            elif "<" in line or ">" in line:
                unclosed += line.count("<") - line.count(">")
            yield is_quoted

    def reply(self) -> str:
        begin, end = 0, self._signature_start()
        for _ in range(MAX_FORWARDS):
            mark = self._first_mark(begin, end)
            if mark is None:
                break
            if self._has_own(begin, mark.start) or not self._begins_below(mark, end):
                return self._reply_around(mark, begin, end)
            begin = mark.end
        return self._text(begin, self._own_end(begin, end) if self._has_own(begin, end) else end)

    def _begins_below(self, mark: _Mark, end: int) -> bool:
        """Return whether unquoted lines are next to a mark: a forwarded message, or one that quotes without marks."""
        runs = self._runs(mark.end, end)
        return mark.is_header or not runs or not runs[0].is_quote

    def _reply_around(self, mark: _Mark, begin: int, end: int) -> str:
        front_end = self._own_end(begin, mark.start)
        if mark.is_header:
            return self._text(begin, front_end)
        runs = self._runs(mark.end, end)
        answers = [run for run in runs if not run.is_quote]
        has_front = self._has_own(begin, mark.start)
        if not answers or not runs[0].is_quote:
            return self._text(begin, front_end) if has_front else ""
        if has_front and not self._is_greeting(begin, mark.start):
            # Between quotes, or long.
            if len(runs) > 2 or self._length(answers[-1]) >= ANSWER_LINES:
                return f"{self._text(begin, front_end)}\n\n{self._text(mark.end, answers[-1].end)}"
            return self._text(begin, front_end)
        if not has_front and len(runs) == 2:
            return self._text(answers[0].start, answers[0].end)
        return self._text(begin, answers[-1].end)

    def _text(self, begin: int, end: int) -> str:
        kept = (line for number, line in enumerate(self.lines[begin:end], begin) if number not in self.dropped)
        return "\n".join(kept).strip()

    # Parts of a text

    def _is_rule(self, number: int) -> bool:
        return not self.folded[number].strip(RULES)

    def _is_long_rule(self, number: int) -> bool:
        line = self.bare[number]
        return len(line) >= RULE_LENGTH and (not line.strip(RULES) or is_between_rules(line))

    def _is_own(self, number: int) -> bool:
        return not self.is_quoted[number] and not self._is_rule(number) and number not in self.dropped

    def _has_own(self, begin: int, end: int) -> bool:
        return any(map(self._is_own, range(begin, end)))

    def _own_end(self, begin: int, end: int) -> int:
        """Return the end of the lines without quotes, and without rules above what was cut."""
        is_cut = end < len(self.lines)
        while end > begin and (
            self.is_quoted[end - 1] or not self.folded[end - 1] or (is_cut and self._is_rule(end - 1))
        ):
            end -= 1
        return end

    def _is_greeting(self, begin: int, end: int) -> bool:
        own = [self.folded[number] for number in range(begin, end) if self._is_own(number)]
        return len(own) == 1 and is_greeting(own[0])

    def _length(self, run: _Run) -> int:
        """Return the number of lines, of which long ones are several."""
        own = (self.lines[number] for number in range(run.start, run.end) if self._is_own(number))
        return sum(1 + len(line) // LINE_LENGTH for line in own)

    def _runs(self, begin: int, end: int) -> list[_Run]:
        """Return the quoted and unquoted lines below an introduction, up to a rule behind a quote."""
        kinds: list[tuple[bool, int]] = []
        for number in range(begin, end):
            is_quote = self._is_marked(number) or self._is_wrapped(number, end)
            if not is_quote and kinds and kinds[-1][0] and self._is_rule(number):
                if len(self.folded[number]) >= RULE_LENGTH:
                    break
                continue
            if self.folded[number]:
                kinds.append((is_quote, number))
        groups = [(is_quote, list(found)) for is_quote, found in groupby(kinds, key=lambda kind: kind[0])]
        return [_Run(found[0][1], found[-1][1] + 1, is_quote) for is_quote, found in groups]

    def _is_marked(self, number: int) -> bool:
        """Return whether a line is quoted by ">", "|" or "Ada>"."""
        word = self.folded[number][:16].replace("|", ">").partition(">")
        return self.is_quoted[number] or (bool(word[1]) and (not word[0] or word[0].isalpha()))

    def _is_wrapped(self, number: int, end: int) -> bool:
        """Return whether a line is the end of a quoted line that was wrapped."""
        return (
            0 < number < end - 1
            and self._is_marked(number - 1)
            and self._is_marked(number + 1)
            and len(self.lines[number - 1]) >= WRAPPED_LENGTH
        )

    # Signatures

    def _signature_start(self) -> int:
        """Return the first line of a signature below own text. Lines of mail programs above the text are dropped."""
        has_own = False
        for number, line in enumerate(self.folded):
            is_separator = line == "--" or self._is_list_footer(number)
            is_isolated = number == 0 or not self.folded[number - 1] or number - 1 in self.dropped
            if is_separator or (not self.is_quoted[number] and is_signature(line, is_isolated=is_isolated)):
                if has_own:
                    return number
                self.dropped.add(number)
            has_own = has_own or self._is_own(number)
        return len(self.lines)

    def _is_list_footer(self, number: int) -> bool:
        """Return whether a line of underscores begins the footer of a mailing list."""
        line = self.folded[number]
        if not line.startswith("__") or line.strip("_"):
            return False
        footer = [line for line in self.folded[number + 1 : number + 2 * FOOTER_LINES] if line]
        return len(footer) <= FOOTER_LINES and "@" in "".join(footer[:3]) and "http" in "".join(footer[:3])

    # Marks

    def _first_mark(self, begin: int, end: int) -> _Mark | None:
        marks = (self._mark_at(number, begin, end) for number in range(begin, end) if self.folded[number])
        return next((mark for mark in marks if mark), None)

    def _mark_at(self, number: int, begin: int, end: int) -> _Mark | None:
        if self.is_quoted[number]:
            is_first = number == begin or not self.is_quoted[number - 1]
            return self._quoted_mark(number, end) if is_first else None
        if header_end := self._header_end(number, end):
            return _Mark(number, header_end, is_header=True)
        start = self._introduction_start(number, begin, end)
        return None if start is None else _Mark(start, number + 1, is_header=False)

    def _quoted_mark(self, number: int, end: int) -> _Mark | None:
        """Return the mark in the first lines of a quote."""
        first = next((at for at in range(number, min(number + 3, end)) if self.bare[at]), number)
        if header_end := self._header_end(first, end):
            return _Mark(number, header_end, is_header=True)
        for last in range(first, min(first + MAX_INTRODUCTION_LINES, end)):
            text = " ".join(self.bare[first : last + 1])
            if (
                self._may_end_introduction(last)
                and self.examinations
                and introduction_strength(text[:MAX_INTRODUCTION])
            ):
                return _Mark(number, last + 1, is_header=False)
            self.examinations -= bool(self.examinations)
        return None

    def _header_end(self, number: int, end: int) -> int | None:
        """Return the end of a separator with the header below it, or of a header; None if there is none."""
        line = self.bare[number]
        if is_plain(line) and not self.labels[number]:
            return None
        if is_separator(line):
            below = self._next_line(number, end)
            return self._end_of_labels(below, end, fewest=1) or number + 1
        if self._is_long_rule(number):
            below = self._next_line(number, end)
            fewest = 1 if line == OUTLOOK_RULE else 2
            return self._end_of_labels(below, end, fewest=fewest) or self._unknown_header_end(below, end)
        return self._end_of_labels(number, end, fewest=MIN_LABELS)

    def _next_line(self, number: int, end: int) -> int:
        return next((at for at in range(number + 1, min(number + 4, end)) if self.bare[at]), end)

    def _end_of_labels(self, number: int, end: int, *, fewest: int) -> int | None:
        """Return the end of a header block of one language with that many labels."""
        if number >= end or not self.labels[number] or number < self.no_header_before:
            return None
        languages: dict[str, dict[str, str]] = defaultdict(dict)
        last = number
        for at in range(number, min(number + MAX_HEADER_LINES, end)):
            line, found = self.bare[at], self.labels[at]
            if at > number and self._is_long_rule(at):
                break
            if not found and at - last > MAX_UNLABELLED and not ("@" in line or ";" in line):
                break
            for language, kind in found:
                last = at
                languages[language][kind] = f"{line} {self.bare[at + 1]}" if at + 1 < end else line
        if any(is_header(values, fewest) for values in languages.values()):
            return last + 1
        # Fewer of the same labels are no header either.
        self.no_header_before = at
        return None

    def _unknown_header_end(self, number: int, end: int) -> int | None:
        """Return the end of a header block in any language: lines with labels, an address and a time."""
        last = number
        while last < min(end, number + MAX_HEADER_LINES) and LABELLED.match(self.bare[last]):
            last += 1
        return last if has_address_and_time(self.bare[number:last]) else None

    def _may_end_introduction(self, number: int) -> bool:
        """Return whether a line may be the last one of an introduction, which is found once."""
        if number not in self._may_end:
            self._may_end[number] = may_end_introduction(self.bare[number])
        return self._may_end[number]

    def _signs_of(self, number: int) -> Signs:
        """Return the signs of an introduction in a line, which are found once."""
        if number not in self._signs:
            self._signs[number] = find_signs(self.bare[number])
        return self._signs[number]

    def _introduction_start(self, number: int, begin: int, end: int) -> int | None:
        """Return the first line of an introduction that ends with this line."""
        if not (self.has_introductions and self.examinations and self._may_end_introduction(number)):
            return None
        is_above_quote = self._is_above_quote(number, end)
        near = map(self._signs_of, range(max(begin, number + 1 - MAX_INTRODUCTION_LINES), number + 1))
        has_words, has_address, has_time = map(any, zip(*near, strict=True))
        if not (has_words or (has_address and has_time) or (is_above_quote and has_time)):
            return None
        needed = Strength.ABOVE_QUOTE if is_above_quote else Strength.ALONE
        spans = sorted(self._spans(number, begin), key=lambda span: rank(span[1]))
        strengths = [introduction_strength(text) for _, text in spans[: self.examinations]]
        self.examinations -= len(strengths)
        best = max(strengths, default=Strength.NONE)
        return self._with_sender(*spans[strengths.index(best)], begin) if best >= needed else None

    def _is_above_quote(self, number: int, end: int) -> bool:
        below = self._next_line(number, end)
        return below < end and (self.is_quoted[below] or self.folded[below].startswith("|"))

    def _spans(self, number: int, begin: int) -> Iterator[tuple[int, str]]:
        """Yield the starts and texts of one to five lines that end with this line."""
        text = ""
        for start in range(number, max(number - MAX_INTRODUCTION_LINES, begin - 1), -1):
            line = self.folded[start]
            is_gap = not line and text.startswith("<")
            text = f"{line} {text}".strip()
            if is_gap:
                continue
            if not line or self.is_quoted[start] or len(text) > MAX_INTRODUCTION:
                return
            yield start, text

    def _with_sender(self, start: int, text: str, begin: int) -> int:
        """Return the start of an introduction with the line above that has the address of its sender."""
        above = self.folded[start - 1] if start > begin else ""
        return start - 1 if "@" not in text and above.rstrip(" ,")[-1:] in {">", ")"} and "@" in above else start


def _without_name(text: str) -> str:
    """Return a text without a last line such as -Ada, unless it is an item of a list."""
    above, _, last = text.rpartition("\n\n")
    is_item = above.rstrip().endswith(":") or above.rpartition("\n")[2].startswith("-")
    return above.rstrip() if above and is_name(last) and not is_item else text
