"""Sets of templates: which layout and partials belong to which templates, and the limits of what they insert."""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from django.db.models.functions import Now

from core.lib.coded_texts import CodedText
from core.lib.ids import to_uuid
from core.lib.sql import run
from core.workspaces.models import Workspace
from templates_app.content import PartialPlace, SetParts, TemplateContent, unknown_partial, version_content
from templates_app.errors import TemplateInUse, TemplateNotFound, TemplateSyntaxInvalid
from templates_app.models import Template, TemplateQuerySet, TemplateSet, TemplateVersion

# docs/decisions/0332
MAX_DEPTH = 5
MAX_INSERTIONS = 50
# Sets of one template that are kept for its history.
MAX_SETS = 50
# Templates in the message of an error.
MAX_NAMED = 5
# The columns that are large.
TEXTS = ("version__html", "version__text", "version__locales")
ASSIGN = """
UPDATE templates_app_template t SET set_id = s.id FROM templates_app_templateset s
 WHERE s.id = ANY(%s::uuid[]) AND t.id = s.template_id
"""
DETACH_OLD = """
UPDATE templates_app_templateset SET template_id = NULL WHERE id IN (
    SELECT id FROM (
        SELECT id, row_number() OVER (PARTITION BY template_id ORDER BY created_at DESC, id DESC) AS place
          FROM templates_app_templateset WHERE template_id = ANY(%s::uuid[])) numbered
     WHERE place > %s)
"""


class TooDeep(Exception):
    """Raised for partials that contain themselves, are too deep in each other, or too many, with a message."""


@dataclass(frozen=True)
class Part:
    """A layout or partial: its id, its current version, and the partials that its texts name."""

    id: str
    version_id: str
    partials: Mapping[str, int]


@dataclass
class PartGraph:
    """The layouts and partials of a workspace, by id and by alias.

    measured: the depth of each partial, and the insertions that one insertion of it makes; None while it is measured.
    """

    layouts: dict[str, Part]
    partials: dict[str, Part]
    measured: dict[str, tuple[int, int] | None] = field(default_factory=dict)

    def check(self, partials: Mapping[str, int], layout: Part | None) -> None:
        """Raises TooDeep for a text with these partials in a layout. Visits each partial once."""
        insertions = 0
        for used in (partials, layout.partials if layout else {}):
            depth, inserted = self._measure(used)
            insertions += inserted
            if depth > MAX_DEPTH:
                raise TooDeep(CodedText("templates_app.partials_too_deep", limit=MAX_DEPTH))
        if insertions > MAX_INSERTIONS:
            raise TooDeep(CodedText("templates_app.too_many_partials", limit=MAX_INSERTIONS))

    def _measure(self, partials: Mapping[str, int]) -> tuple[int, int]:
        """Return the depth of a text with these partials, and its insertions."""
        depth = insertions = 0
        for name, count in partials.items():
            inner, inserted = self._measure_partial(name)
            depth, insertions = max(depth, inner), insertions + count * inserted
        return depth, insertions

    def _measure_partial(self, name: str) -> tuple[int, int]:
        part = self.partials.get(name)
        if part is None:
            return 1, 1
        found = self.measured.get(part.id, (0, 0))
        if found is None:
            raise TooDeep(CodedText("templates_app.partial_in_itself", name=repr(name)))
        if found == (0, 0):
            self.measured[part.id] = None
            depth, insertions = self._measure(part.partials)
            found = self.measured[part.id] = depth + 1, insertions + 1
        return found

    def versions(self, partials: Collection[str], layout: Part | None) -> dict[str, str]:
        """Return the names and version ids of a set, of which no partial is unknown."""
        found = {TemplateSet.LAYOUT: layout.version_id} if layout else {}
        names = [*partials, *(layout.partials if layout else ())]
        while names:
            name = names.pop()
            if name not in found and name in self.partials:
                found[name] = self.partials[name].version_id
                names += self.partials[name].partials
        return found


def load_graph(workspace: Workspace) -> PartGraph:
    """Return the layouts and partials of a workspace."""
    rows = workspace.templates.exclude(kind=Template.TemplateKind.TEMPLATE)
    found: dict[str, dict[str, Part]] = {kind: {} for kind in Template.TemplateKind}
    for id_, alias, kind, version_id, partials in rows.values_list(
        "id", "alias", "kind", "version_id", "version__partials"
    ):
        part = Part(id_, version_id, partials)
        found[kind] |= {id_: part, **({alias: part} if alias else {})}
    return PartGraph(found[Template.TemplateKind.LAYOUT], found[Template.TemplateKind.PARTIAL])


def find_layout_id(workspace: Workspace, reference: str) -> str:
    """Return the id of the layout with an id or alias. Raises TemplateNotFound."""
    layout = load_graph(workspace).layouts.get(reference)
    if layout is None:
        raise _layout_not_found(reference)
    return layout.id


def check_set(graph: PartGraph, content: TemplateContent, places: Mapping[str, PartialPlace]) -> Part | None:
    """Return the layout of a content.

    Raises TemplateNotFound for an unknown layout; TemplateSyntaxInvalid for a partial that is unknown or too deep.
    """
    layout = graph.layouts.get(content.layout_id) if content.layout_id else None
    if content.layout_id and layout is None:
        raise _layout_not_found(content.layout_id)
    for name, place in places.items():
        if name not in graph.partials:
            raise place.problem(unknown_partial(name))
    try:
        graph.check({name: place.count for name, place in places.items()}, layout)
    except TooDeep as error:
        raise _at_first(places, error) from error
    return layout


def _at_first(places: Mapping[str, PartialPlace], error: TooDeep) -> TemplateSyntaxInvalid:
    """Return the error of limits at the first partial of a content."""
    return next(iter(places.values()), PartialPlace(0, 0, "", "htmlContent")).problem(str(error))


def draft_parts(
    workspace: Workspace | None, content: TemplateContent, places: Mapping[str, PartialPlace]
) -> dict[str, TemplateContent]:
    """Return the contents of the layout and partials of an unsaved content; without a workspace, it can have none.

    Raises the errors of check_set.
    """
    if not content.layout_id and not places:
        return {}
    graph = load_graph(workspace) if workspace else PartGraph({}, {})
    ids = graph.versions(places, check_set(graph, content, places))
    versions = TemplateVersion.objects.in_bulk(ids.values())
    return {name: version_content(versions[id_]) for name, id_ in ids.items()}


def load_parts(set_ids: Collection[str]) -> dict[str, SetParts]:
    """Return the layouts and partials of any number of sets, in two queries."""
    if not set_ids:
        return {}
    sets = TemplateSet.objects.in_bulk(set_ids)
    versions = TemplateVersion.objects.in_bulk({id_ for row in sets.values() for id_ in row.versions})
    return {
        set_id: SetParts(set_id, {name: versions[id_] for name, id_ in zip(row.names, row.versions, strict=True)})
        for set_id, row in sets.items()
    }


def templates_using(template: Template) -> TemplateQuerySet:
    """Return the templates, layouts and partials that a layout or partial is part of."""
    return _with_part(template, template.version_id)


def count_users(templates: Collection[Template]) -> dict[str, int]:
    """Return by id how many templates each of some layouts and partials of one workspace is part of."""
    parts = {row.version_id: row.id for row in templates if row.kind != Template.TemplateKind.TEMPLATE}
    if not parts:
        return {}
    workspace = next(iter(templates)).workspace_id
    users = Template.objects.sendable().filter(workspace=workspace, set__versions__overlap=[*parts])
    sets = users.values_list("set__versions", flat=True)
    # A set may name one partial by its id and by its alias.
    return dict(Counter(parts[id_] for versions in sets for id_ in {*versions} & parts.keys()))


def _with_part(template: Template, version_id: str) -> TemplateQuerySet:
    if template.kind == Template.TemplateKind.TEMPLATE:
        return Template.objects.none()
    users = Template.objects.filter(workspace=template.workspace_id, set__versions__contains=[version_id])
    return users.exclude(id=template.id).order_by("name", "id")


def refuse_in_use(template: Template, *, name: str | None = None) -> None:
    """Raise TemplateInUse if a layout or partial belongs to templates. name: only those that use this name of it."""
    users = templates_using(template)
    if name:
        users = users.filter(set__names__contains=[name])
    if found := list(users.values("id", "name")):
        names = ", ".join(user["name"] for user in found[:MAX_NAMED])
        raise TemplateInUse(CodedText("templates_app.in_use", count=len(found), names=names), templates=found)


def renew_sets(
    template: Template,
    content: TemplateContent,
    places: Mapping[str, PartialPlace],
    *,
    replaced: str | None = None,
) -> None:
    """Store the set of a template with a new version, and new sets of the templates that it is part of.

    replaced: the version before, for an existing template. The workspace is locked.
    Raises the errors of check_set, also for those templates.
    """
    users = list(_with_part(template, replaced).select_related("version", "set").defer(*TEXTS)) if replaced else []
    if content.layout_id or places or users:
        graph = load_graph(template.workspace)
        found = {template: graph.versions(places, check_set(graph, content, places))}
        for user in users:
            found[user] = _renewed(graph, user, places)
        _store(found)
    elif template.set_id:
        _store({template: {}})


def _renewed(graph: PartGraph, user: Template, places: Mapping[str, PartialPlace]) -> dict[str, str]:
    """Return the set of a template after one of its parts has changed. Raises TemplateSyntaxInvalid at that part."""
    layout = graph.layouts.get(user.version.layout_id or "")
    try:
        graph.check(user.version.partials, layout)
    except TooDeep as error:
        raise _at_first(places, error) from error
    return graph.versions(user.version.partials, layout)


def _store(found: Mapping[Template, Mapping[str, str]]) -> None:
    """Replace the sets of templates by those with these names and versions; an empty one is none."""
    retired = [template.set_id for template in found if template.set_id]
    TemplateSet.objects.filter(id__in=retired).update(retired_at=Now())
    rows = [
        TemplateSet(template=template, version_id=template.version_id, names=[*ids], versions=[*ids.values()])
        for template, ids in found.items()
        if ids
    ]
    TemplateSet.objects.bulk_create(rows)
    templates = [template.id for template in found]
    Template.objects.filter(id__in=templates).update(set=None)
    run(ASSIGN, [[to_uuid(row.id, prefix="tpls_") for row in rows]])
    run(DETACH_OLD, [[to_uuid(id_, prefix="tpl_") for id_ in templates], MAX_SETS])


def _layout_not_found(reference: str) -> TemplateNotFound:
    detail = CodedText("templates_app.layout_not_found", name=repr(reference[:80]))
    return TemplateNotFound(detail, field="layoutId")
