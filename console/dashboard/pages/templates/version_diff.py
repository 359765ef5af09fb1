"""Differences of two versions of a template, line by line (docs/decisions/0271)."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import takewhile

from django.http import Http404
from django.utils.translation import gettext as _

from templates_app.models import Template, TemplateVersion

CONTEXT_LINES = 3
# The time grows with the square of the lines that differ: 0.4 seconds for 2,000 unfavourable ones.
MAX_DIFFERENT_LINES = 1_000
# HTML in one line would differ as a whole, so longer lines are broken between their tags.
LONG_LINE = 200
BETWEEN_TAGS = re.compile(r"(?<=>)(?=<)")
MAX_SHOWN_LENGTH = 1_000
REMOVED, ADDED, SAME, SKIPPED = "-", "+", " ", "…"


@dataclass(frozen=True)
class DiffLine:
    """sign: REMOVED, ADDED, SAME, or SKIPPED for lines that are the same and not shown."""

    sign: str
    text: str = ""


@dataclass(frozen=True)
class PartDiff:
    """The lines of one part around its differences. lines: empty if nothing differs, or if too much does."""

    name: str
    lines: Sequence[DiffLine]
    is_too_large: bool = False


@dataclass(frozen=True)
class VersionDiff:
    """is_first: new has no earlier version, so it is old as well."""

    old: TemplateVersion
    new: TemplateVersion
    is_first: bool = False

    @property
    def parts(self) -> list[PartDiff]:
        """The parts that differ."""
        names = {"subject": _("Subject"), "html": "HTML", "text": _("Text")}
        changed = {field: name for field, name in names.items() if getattr(self.old, field) != getattr(self.new, field)}
        return [diff_part(name, getattr(self.old, field), getattr(self.new, field)) for field, name in changed.items()]


def read_diff(template: Template, *, new_id: str, old_id: str) -> VersionDiff:
    """Return two versions of a template, by default its current one and the one before the newer.

    Raises Http404 for the id of another template's version.
    """
    new = _find(template, new_id or template.version_id)
    if old_id:
        return VersionDiff(_find(template, old_id), new)
    earlier = template.versions.filter(created_at__lt=new.created_at).order_by("-created_at", "-id").first()
    return VersionDiff(earlier or new, new, is_first=earlier is None)


def diff_part(name: str, old: str, new: str) -> PartDiff:
    before, after = list(_split(old)), list(_split(new))
    start = _count_same(before, after)
    end = _count_same(before[start:][::-1], after[start:][::-1])
    lengths = len(before) - start - end, len(after) - start - end
    if max(lengths) > MAX_DIFFERENT_LINES:
        return PartDiff(name, [], is_too_large=True)
    # The context around the differences, and one line more, which is skipped.
    first = max(start - CONTEXT_LINES - 1, 0)
    kept = CONTEXT_LINES + 1
    lines = _diff(before[first : len(before) - end + kept], after[first : len(after) - end + kept])
    return PartDiff(name, list(lines))


def _find(template: Template, version_id: str) -> TemplateVersion:
    # A comparison in Python: an invalid id would be an error of the field.
    if version_id not in template.versions.values_list("id", flat=True):
        raise Http404
    return template.versions.get(id=version_id)


def _split(text: str) -> Iterator[str]:
    for line in text.split("\n"):
        yield from BETWEEN_TAGS.split(line) if len(line) > LONG_LINE else (line,)


def _count_same(old: Sequence[str], new: Sequence[str]) -> int:
    return sum(1 for _pair in takewhile(lambda pair: pair[0] == pair[1], zip(old, new, strict=False)))


def _diff(old: Sequence[str], new: Sequence[str]) -> Iterator[DiffLine]:
    position = 0
    for group in SequenceMatcher(None, old, new).get_grouped_opcodes(CONTEXT_LINES):
        if group[0][1] > position:
            yield DiffLine(SKIPPED)
        for kind, old_start, old_end, new_start, new_end in group:
            if kind == "equal":
                yield from _lines(SAME, old[old_start:old_end])
                continue
            yield from _lines(REMOVED, old[old_start:old_end])
            yield from _lines(ADDED, new[new_start:new_end])
        position = group[-1][2]
    if position < len(old):
        yield DiffLine(SKIPPED)


def _lines(sign: str, texts: Sequence[str]) -> Iterator[DiffLine]:
    for text in texts:
        is_cut = len(text) > MAX_SHOWN_LENGTH
        yield DiffLine(sign, f"{text[:MAX_SHOWN_LENGTH]}…" if is_cut else text)
