"""Template services: create, update, delete, preview and render."""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.db.models.functions import Now

from core.api.errors import InvalidFields, NotFound, Problem
from core.lib.coded_texts import CodedText
from core.lib.ids import from_any_spelling, is_id
from core.workspaces.audit import AuditAction, record_action
from core.workspaces.errors import PlanLimitReached, TemplateNotAllowed
from core.workspaces.key_limits import KeyLimits
from core.workspaces.models import Workspace
from templates_app.content import (
    CompiledContent,
    PartialPlace,
    RenderedContent,
    TemplateContent,
    check_content,
    compile_linked,
    render_content,
    version_content,
    version_contents,
    with_placeholder,
)
from templates_app.errors import AliasTaken, TemplateNotFound, TemplateNotSendable, TemplateOutputTooLarge
from templates_app.language.rendering import OutputTooLarge
from templates_app.language.sample_data import sample_data as sample_values
from templates_app.models import ALIAS, Template, TemplateSet, TemplateVersion
from templates_app.sets import draft_parts, find_layout_id, refuse_in_use, renew_sets, templates_using

MAX_TEMPLATES = 1000
# Versions of one template: the current one and those that can be restored.
MAX_VERSIONS = 50
# The columns that update_template changes, without those of the content.
CHANGEABLE = (
    "name", "alias", "strict_variables", "sensitive", "deliver_within", "sample_data", "sender", "reply_to",
)  # fmt: skip
CONTENT_FIELDS = {column.name for column in fields(TemplateContent)}


def preview_draft(
    content: TemplateContent,
    *,
    data: Mapping[str, Any],
    workspace: Workspace | None = None,
    kind: str = Template.TemplateKind.TEMPLATE,
    locale: str | None = None,
) -> RenderedContent:
    """Render unsaved content with the layout and partials of a workspace.

    locale: the one that is asked for.
    Raises TemplateSyntaxInvalid, TemplateNotFound for an unknown layout, TemplateOutputTooLarge.
    """
    return _previewed(compile_linked_draft(content, workspace=workspace, kind=kind, locale=locale), data)


def compile_linked_draft(
    content: TemplateContent, *, workspace: Workspace | None, kind: str, locale: str | None
) -> CompiledContent:
    """Compile unsaved content with the layout and partials of a workspace. Raises the errors of preview_draft."""
    places = check_content(content, kind)
    parts = draft_parts(workspace, content, places)
    return _linked_draft(content, parts, kind=kind, locale=locale)


def _linked_draft(
    content: TemplateContent, parts: Mapping[str, TemplateContent], *, kind: str, locale: str | None
) -> CompiledContent:
    linked = compile_linked(content, parts, kind=kind, locale=locale)
    return linked if kind != Template.TemplateKind.LAYOUT else with_placeholder(linked)


def preview_users(template: Template, content: TemplateContent) -> Iterator[tuple[Template, RenderedContent]]:
    """Yield the templates that a layout or partial is part of, as they would be with this unsaved content.

    Each is rendered with its sample data when it is asked for: there may be hundreds. Raises the errors of
    preview_draft.
    """
    for user in templates_using(template).sendable().select_related("version", "set"):
        yield user, preview_user(template, user, content)


def preview_user(
    template: Template, user: Template, content: TemplateContent, *, locale: str | None = None
) -> RenderedContent:
    """Render a template that a layout or partial is part of, with unsaved content of that part and its sample data.

    locale: the one that is asked for. Raises the errors of preview_draft.
    """
    assert user.set
    added = draft_parts(template.workspace, TemplateContent("", ""), check_content(content, template.kind))
    parts = version_contents(user.set.load_parts())
    ids = dict(zip(user.set.names, user.set.versions, strict=True))
    changed = {name: content for name, id_ in ids.items() if id_ == template.version_id}
    linked = _linked_draft(version_content(user.version), {**added, **parts, **changed}, kind=user.kind, locale=locale)
    return _previewed(linked, _sample_values(user, linked))


def _sample_values(template: Template, compiled: CompiledContent) -> dict[str, Any]:
    """Return the sample data of a template, or a value for each variable if it has none."""
    try:
        values = json.loads(template.sample_data or "{}")
    except ValueError:
        values = {}
    return values or sample_values(compiled.subject, compiled.html, compiled.text)


def _previewed(compiled: CompiledContent, data: Mapping[str, Any]) -> RenderedContent:
    try:
        return render_content(compiled, data)
    except OutputTooLarge as error:
        raise TemplateOutputTooLarge(str(error)) from error


def find_template(workspace: Workspace, reference: str) -> Template:
    """Return the template with the given id, in either spelling, or alias. Raises TemplateNotFound."""
    template = _named(workspace, [reference]).get(reference)
    if template is None:
        raise template_not_found(reference)
    return template


def find_templates(
    workspace: Workspace, references: Collection[str | None], limits: KeyLimits
) -> dict[str | None, Template | Problem | None]:
    """Return the templates of emails as find_template does, or the problems of sending with them, in one query.

    The reference of an email without a template is None, and so is its template.
    Problems are TemplateNotFound, TemplateNotAllowed, and TemplateNotSendable for a layout or partial.
    """
    named = _named(workspace, [name for name in references if name])
    return {name: _permitted(limits, name, named.get(name or "")) for name in references}


def _named(workspace: Workspace, references: Collection[str]) -> dict[str, Template]:
    """Return the templates by their ids, in either spelling, or aliases, as given; without those that do not exist."""
    # Building an empty query takes half as long as accepting the email.
    if not references:
        return {}
    ids = {name: from_any_spelling(name, prefix="tpl_") for name in references}
    by_id = Q(id__in=[template_id for template_id in ids.values() if is_id(template_id, prefix="tpl_")])
    # The texts of other languages are read when they are compiled for the first time.
    rows = workspace.templates.select_related("version").defer("version__locales").filter(by_id | Q(alias__in=ids))
    found = {key: row for row in rows for key in (row.id, row.alias)}
    return {name: row for name, template_id in ids.items() if (row := found.get(template_id) or found.get(name))}


def _permitted(limits: KeyLimits, reference: str | None, template: Template | None) -> Template | Problem | None:
    if reference and template is None:
        return template_not_found(reference)
    if template and template.kind != Template.TemplateKind.TEMPLATE:
        reason = CodedText("templates_app.not_sendable", name=repr(template.name))
        return TemplateNotSendable(reason, field="templateId")
    if limits.templates and not (template and {template.id, template.alias} & {*limits.templates}):
        detail = f"This API key can send with these templates only: {', '.join(limits.templates)}. Use another key."
        return TemplateNotAllowed(detail, field="templateId", allowedTemplates=list(limits.templates))
    return template


def template_lookup(reference: str) -> dict[str, str]:
    """Return the queryset lookup for an id or an alias, which is never similar to an id."""
    template_id = from_any_spelling(reference, prefix="tpl_")
    return {"alias": reference} if template_id == reference and ALIAS.fullmatch(reference) else {"id": template_id}


def template_not_found(reference: str) -> TemplateNotFound:
    return TemplateNotFound(CodedText("templates_app.not_found", name=repr(reference[:80])))


def preview_template(template: Template, *, data: Mapping[str, Any], locale: str | None = None) -> RenderedContent:
    """Render a stored template for a preview. locale: the one that is asked for. Raises TemplateOutputTooLarge."""
    content = version_content(template.version)
    parts = version_contents(template.set.load_parts()) if template.set else {}
    return _previewed(_linked_draft(content, parts, kind=template.kind, locale=locale), data)


@transaction.atomic
def create_template(
    workspace: Workspace,
    *,
    name: str,
    content: TemplateContent,
    alias: str | None,
    strict_variables: bool,
    sensitive: bool = False,
    deliver_within: int | None = None,
    kind: str = Template.TemplateKind.TEMPLATE,
    sample_data: str = "",
    sender: str = "",
    reply_to: str = "",
) -> Template:
    """Create a template, layout or partial.

    Raises TemplateSyntaxInvalid, TemplateNotFound for an unknown layout, AliasTaken, and PlanLimitReached at 1,000
    templates.
    """
    content = _checked(workspace, content, kind)
    places = check_content(content, kind)
    workspace.lock()
    if workspace.templates.count() >= MAX_TEMPLATES:
        detail = CodedText("templates_app.too_many", limit=MAX_TEMPLATES)
        raise PlanLimitReached(detail, resource="templates", limit=MAX_TEMPLATES)
    version = _new_version(content, places)
    template = Template(
        workspace=workspace,
        kind=kind,
        name=name,
        alias=alias,
        strict_variables=strict_variables,
        sensitive=sensitive,
        deliver_within=deliver_within,
        sample_data=sample_data,
        sender=sender,
        reply_to=reply_to,
        version=version,
    )
    _save(template, force_insert=True)
    record_action(workspace, AuditAction.TEMPLATE_CREATED, about=name)
    TemplateVersion.objects.filter(id=version.id).update(template=template)
    renew_sets(template, content, places)
    template.refresh_from_db(fields=["set"])
    return template


def duplicate_template(template: Template, *, name: str) -> Template:
    """Create a template with the same content and without an alias. Raises PlanLimitReached."""
    return create_template(
        template.workspace,
        name=name,
        content=version_content(template.version),
        alias=None,
        kind=template.kind,
        strict_variables=template.strict_variables,
        sensitive=template.sensitive,
        deliver_within=template.deliver_within,
        sample_data=template.sample_data,
        sender=template.sender,
        reply_to=template.reply_to,
    )


def restore_version(template: Template, version: TemplateVersion) -> Template:
    """Make the content of an earlier version the current one, as a new version; layout and partials stay current.

    Raises the errors of update_template, such as TemplateNotFound for a layout that was deleted.
    """
    return update_template(template, changes=vars(version_content(version)))


def lock_template(template: Template) -> Template:
    """Lock a template and return it as it is now. Call it in a transaction. Raises NotFound.

    The workspace is locked first: a change of a layout or partial also changes templates that use it.

    A join with the version would find no row if the transaction that had the lock created another version.
    """
    Workspace(id=template.workspace_id).lock()
    locked = Template.objects.select_for_update().filter(id=template.id).first()
    if locked is None:
        raise NotFound
    return locked


@transaction.atomic
def update_template(template: Template, *, changes: Mapping[str, Any]) -> Template:
    """Update the fields of a template, or its content. Accepted emails keep the old version.

    Raises TemplateSyntaxInvalid, TemplateNotFound for an unknown layout, AliasTaken, and TemplateInUse for another
    alias of a partial that templates name.
    """
    locked = lock_template(template)
    old, replaced = version_content(locked.version), locked.version_id
    new = replace(old, **{name: changes[name] for name in changes.keys() & CONTENT_FIELDS})
    if new != old:
        new = _checked(locked.workspace, new, locked.kind)
    places = check_content(new, locked.kind)
    if "alias" in changes and changes["alias"] != locked.alias and locked.alias:
        refuse_in_use(locked, name=locked.alias)
    if new != old:
        _retire(locked.version_id)
        locked.version = _new_version(new, places, template=locked)
        _detach_old_versions(locked)
    for name in CHANGEABLE:
        setattr(locked, name, changes.get(name, getattr(locked, name)))
    locked.updated_at = Now()
    _save(locked)
    if new != old:
        renew_sets(locked, new, places, replaced=replaced)
        locked.refresh_from_db(fields=["set"])
    if changes:
        about = CodedText("workspaces.change", about=locked.name, words=list(changes))
        record_action(locked.workspace, AuditAction.TEMPLATE_CHANGED, about=about)
    return locked


@transaction.atomic
def delete_template(template: Template) -> None:
    """Delete a template. Versions used by accepted emails are kept as long as those emails.

    Raises TemplateInUse for a layout or partial that belongs to templates.
    """
    Workspace(id=template.workspace_id).lock()
    locked = Template.objects.select_for_update().filter(id=template.id).first()
    if locked is None:
        return
    refuse_in_use(locked)
    locked.delete()
    _retire(locked.version_id)
    TemplateSet.objects.filter(id=locked.set_id).update(retired_at=Now())
    record_action(template.workspace, AuditAction.TEMPLATE_DELETED, about=template.name)


def _checked(workspace: Workspace, content: TemplateContent, kind: str) -> TemplateContent:
    """Return content that names its layout by id.

    Raises TemplateNotFound, and InvalidFields for a layout or partial with a subject or a layout.
    """
    if kind != Template.TemplateKind.TEMPLATE and (content.subject or content.layout_id):
        name = "subject" if content.subject else "layoutId"
        detail = CodedText("templates_app.part_field")
        raise InvalidFields([{"field": name, "code": "not_allowed", "detail": detail}])
    if not content.layout_id:
        return replace(content, layout_id=None)
    return replace(content, layout_id=find_layout_id(workspace, content.layout_id))


def _new_version(
    content: TemplateContent, places: Mapping[str, PartialPlace], *, template: Template | None = None
) -> TemplateVersion:
    values = {**vars(content), "fallback": [*content.fallback]}
    partials = {name: place.count for name, place in places.items()}
    return TemplateVersion.objects.create(template=template, partials=partials, **values)


def _detach_old_versions(template: Template) -> None:
    """Keep the newest versions; retention deletes the others unless an email uses them."""
    newest = template.versions.order_by("-created_at", "-id").values_list("id", flat=True)[:MAX_VERSIONS]
    template.versions.exclude(id__in=list(newest)).update(template=None)


def _retire(version_id: str | None) -> None:
    TemplateVersion.objects.filter(id=version_id).update(retired_at=Now())


def _save(template: Template, **options: Any) -> None:
    try:
        with transaction.atomic():
            template.save(**options)
    except IntegrityError as error:
        raise AliasTaken(CodedText("templates_app.alias_taken", name=repr(template.alias))) from error
    template.refresh_from_db()
