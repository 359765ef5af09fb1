"""The history of a template: its versions, each with the layouts and partials that it had (docs/decisions/0342)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise

from django.utils.translation import gettext as _

from templates_app.content import PARTS
from templates_app.models import Template, TemplateSet, TemplateVersion

MAX_STATES = 50
TEXTS = ("html", "text", "locales")


@dataclass(frozen=True)
class TemplateState:
    """A template at one time: a version of its own texts, and the versions of its layout and partials.

    parts: their versions by their names in the set.
    changed: the names of those that differ from the state before.
    """

    id: str
    created_at: datetime
    version: TemplateVersion
    parts: Mapping[str, str] = field(default_factory=dict)
    changed: tuple[str, ...] = ()

    def has_id(self, state_id: str) -> bool:
        """Return whether an id is that of the state, or of its version."""
        return state_id in {self.id, self.version.id}

    @property
    def changed_parts(self) -> list[str]:
        return [part_label(name) for name in self.changed]


def read_history(template: Template) -> list[TemplateState]:
    """Return the states of a template without their texts, newest first."""
    versions = {version.id: version for version in template.versions.defer(*TEXTS)}
    sets = [_state(row, versions[row.version_id]) for row in template.sets.filter(version_id__in=[*versions])]
    known = {state.version.id for state in sets}
    bare = [TemplateState(row.id, row.created_at, row) for row in versions.values() if row.id not in known]
    states = sorted([*sets, *bare], key=lambda state: (state.created_at, state.id), reverse=True)[:MAX_STATES]
    return [*_compared(states), *states[-1:]]


def current_id(template: Template) -> str:
    """Return the id of the state that a template has now."""
    return template.set_id or template.version_id


def part_label(name: str) -> str:
    """Return the name of a part of a set for people."""
    return _("Layout") if name == TemplateSet.LAYOUT else _("Partial %(name)s") % {"name": name}


def state_texts(state: TemplateState, layouts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the texts of a state, each with its label: its own, then those of its layout and partials.

    layouts: the names of layouts by id.
    """
    versions = TemplateVersion.objects.in_bulk([state.version.id, *state.parts.values()])
    own = versions[state.version.id]
    yield from _version_texts(own)
    yield _("Settings"), _settings(own, layouts)
    for name, version_id in state.parts.items():
        for label, text in _version_texts(versions[version_id]):
            yield f"{part_label(name)}: {label}", text


def _state(row: TemplateSet, version: TemplateVersion) -> TemplateState:
    return TemplateState(row.id, row.created_at, version, dict(zip(row.names, row.versions, strict=True)))


def _compared(states: list[TemplateState]) -> Iterator[TemplateState]:
    for state, before in pairwise(states):
        names = dict.fromkeys([*state.parts, *before.parts])
        changed = tuple(name for name in names if state.parts.get(name) != before.parts.get(name))
        yield TemplateState(state.id, state.created_at, state.version, state.parts, changed)


def _version_texts(version: TemplateVersion) -> Iterator[tuple[str, str]]:
    labels = {"subject": _("Subject"), "html": "HTML", "text": _("Text")}
    for part in PARTS:
        yield labels[part], getattr(version, part)
    for locale, texts in version.locales.items():
        for part in PARTS:
            if part in texts:
                yield f"{labels[part]} ({locale})", texts[part]


def _settings(version: TemplateVersion, layouts: Mapping[str, str]) -> str:
    """Return the settings of a version, one a line; those that are empty are left out."""
    values = {
        _("Layout"): layouts.get(version.layout_id or "", version.layout_id),
        _("Language of these texts"): version.locale,
        _("Languages"): ", ".join(version.locales),
        _("Other languages to try first"): ", ".join(version.fallback),
    }
    return "\n".join(f"{label}: {value}" for label, value in values.items() if value)
