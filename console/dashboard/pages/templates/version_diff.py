"""Differences of two states of a template, line by line (docs/decisions/0271)."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import takewhile

from django.http import Http404

from console.dashboard.pages.templates.history import TemplateState, current_id, state_texts
from templates_app.models import Template

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
    """Two states of a template.

    parts: the texts that differ.
    is_first: new has no earlier state, so it is old as well.
    """

    old: TemplateState
    new: TemplateState
    parts: Sequence[PartDiff]
    is_first: bool = False


def read_diff(template: Template, history: Sequence[TemplateState], *, new_id: str, old_id: str) -> VersionDiff:
    """Return two states of a template, by default its current one and the one before the newer.

    new_id, old_id: of states or of versions. Raises Http404 for an id of another template.
    """
    new = _find(history, new_id or current_id(template))
    if old_id:
        old = _find(history, old_id)
        return VersionDiff(old, new, _diff_states(template, old, new))
    earlier = next(iter(history[history.index(new) + 1 :]), None)
    old = earlier or new
    return VersionDiff(old, new, _diff_states(template, old, new), is_first=earlier is None)


def _diff_states(template: Template, old: TemplateState, new: TemplateState) -> list[PartDiff]:
    used = [version.layout_id for version in (old.version, new.version) if version.layout_id]
    layouts = dict(Template.objects.filter(workspace=template.workspace_id, id__in=used).values_list("id", "name"))
    before, after = (dict(state_texts(state, layouts)) for state in (old, new))
    labels = [label for label in {**after, **before} if before.get(label, "") != after.get(label, "")]
    return [diff_part(label, before.get(label, ""), after.get(label, "")) for label in labels]


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


def _find(history: Sequence[TemplateState], state_id: str) -> TemplateState:
    found = next((state for state in history if state.has_id(state_id)), None)
    if found is None:
        raise Http404
    return found


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
