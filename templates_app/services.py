"""Template services: create, update, delete, preview and render."""

import functools
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.db.models.functions import Now

from core.api.errors import NotFound, Problem
from core.lib.coded_texts import CodedText
from core.lib.ids import from_any_spelling, is_id
from core.workspaces.audit import AuditAction, record_action
from core.workspaces.errors import PlanLimitReached, TemplateNotAllowed
from core.workspaces.key_limits import KeyLimits
from core.workspaces.models import Workspace
from templates_app.errors import AliasTaken, TemplateNotFound, TemplateOutputTooLarge, TemplateSyntaxInvalid
from templates_app.language.rendering import OutputTooLarge, RenderBudget, RenderMode, render
from templates_app.language.syntax import CompiledTemplate, TemplateSyntaxError, compile_template
from templates_app.models import ALIAS, Template, TemplateVersion

MAX_TEMPLATES = 1000
# Versions of one template: the current one and those that can be restored.
MAX_VERSIONS = 50
COMPILED_CACHE_SIZE = 256


@dataclass(frozen=True)
class TemplateContent:
    """Subject, HTML and text of a template before compilation."""

    subject: str
    html: str
    text: str = ""


@dataclass(frozen=True)
class CompiledContent:
    subject: CompiledTemplate
    html: CompiledTemplate
    text: CompiledTemplate


@dataclass(frozen=True)
class RenderedContent:
    """Subject, HTML and text for one recipient.

    missing: the variables of a template without a value, in order of appearance.
    """

    subject: str
    html: str
    text: str
    missing: tuple[str, ...] = ()


def compile_draft(content: TemplateContent) -> CompiledContent:
    """Compile unsaved content. Raises TemplateSyntaxInvalid with field, line and column.

    Bypasses the cache: each keystroke is new content and would evict the templates in use.
    """
    return CompiledContent(
        subject=_compiled("subject", content.subject),
        html=_compiled("htmlContent", content.html),
        text=_compiled("textContent", content.text),
    )


compile_content = functools.lru_cache(maxsize=COMPILED_CACHE_SIZE)(compile_draft)


def preview_draft(content: TemplateContent, *, data: Mapping[str, Any]) -> RenderedContent:
    """Render unsaved content. Raises TemplateSyntaxInvalid, TemplateOutputTooLarge."""
    try:
        return render_content(compile_draft(content), data)
    except OutputTooLarge as error:
        raise TemplateOutputTooLarge(str(error)) from error


def render_content(
    compiled: CompiledContent, data: Mapping[str, Any], *, budget: RenderBudget | None = None
) -> RenderedContent:
    """Render compiled content with data. budget: the budget of a request that renders more than once.

    Raises rendering.OutputTooLarge.
    """
    budget = budget or RenderBudget()
    subject = render(compiled.subject, data, mode=RenderMode.SUBJECT, budget=budget)
    html = render(compiled.html, data, mode=RenderMode.HTML, budget=budget)
    text = render(compiled.text, data, mode=RenderMode.TEXT, budget=budget)
    missing = dict.fromkeys((*subject.missing, *html.missing, *text.missing))
    return RenderedContent(subject.text, html.text, text.text, tuple(missing))


def version_content(version: TemplateVersion) -> TemplateContent:
    return TemplateContent(subject=version.subject, html=version.html, text=version.text)


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
    Problems are TemplateNotFound and TemplateNotAllowed.
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
    rows = workspace.templates.select_related("version").filter(by_id | Q(alias__in=ids))
    found = {key: row for row in rows for key in (row.id, row.alias)}
    return {name: row for name, template_id in ids.items() if (row := found.get(template_id) or found.get(name))}


def _permitted(limits: KeyLimits, reference: str | None, template: Template | None) -> Template | Problem | None:
    if reference and template is None:
        return template_not_found(reference)
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


def preview_template(template: Template, *, data: Mapping[str, Any]) -> RenderedContent:
    """Render a stored template for a preview. Raises TemplateOutputTooLarge."""
    try:
        return render_content(compile_content(version_content(template.version)), data)
    except OutputTooLarge as error:
        raise TemplateOutputTooLarge(str(error)) from error


@transaction.atomic
def create_template(
    workspace: Workspace,
    *,
    name: str,
    content: TemplateContent,
    alias: str | None,
    strict_variables: bool,
    sample_data: str = "",
    sender: str = "",
    reply_to: str = "",
) -> Template:
    """Create a template. Raises TemplateSyntaxInvalid, AliasTaken, and PlanLimitReached at 1,000 templates."""
    compile_content(content)
    workspace.lock()
    if workspace.templates.count() >= MAX_TEMPLATES:
        detail = CodedText("templates_app.too_many", limit=MAX_TEMPLATES)
        raise PlanLimitReached(detail, resource="templates", limit=MAX_TEMPLATES)
    version = _new_version(content)
    template = Template(
        workspace=workspace,
        name=name,
        alias=alias,
        strict_variables=strict_variables,
        sample_data=sample_data,
        sender=sender,
        reply_to=reply_to,
        version=version,
    )
    _save(template, force_insert=True)
    record_action(workspace, AuditAction.TEMPLATE_CREATED, about=name)
    TemplateVersion.objects.filter(id=version.id).update(template=template)
    return template


def duplicate_template(template: Template, *, name: str) -> Template:
    """Create a template with the same content and without an alias. Raises PlanLimitReached."""
    return create_template(
        template.workspace,
        name=name,
        content=version_content(template.version),
        alias=None,
        strict_variables=template.strict_variables,
        sample_data=template.sample_data,
        sender=template.sender,
        reply_to=template.reply_to,
    )


def restore_version(template: Template, version: TemplateVersion) -> Template:
    """Make the content of an earlier version the current one, as a new version."""
    return update_template(template, changes=asdict(version_content(version)))


def lock_template(template: Template) -> Template:
    """Lock a template and return it as it is now. Call it in a transaction. Raises NotFound.

    A join with the version would find no row if the transaction that had the lock created another version.
    """
    locked = Template.objects.select_for_update().filter(id=template.id).first()
    if locked is None:
        raise NotFound
    return locked


@transaction.atomic
def update_template(template: Template, *, changes: Mapping[str, Any]) -> Template:
    """Update the fields of a template, or its content. Accepted emails keep the old version.

    Raises TemplateSyntaxInvalid, AliasTaken.
    """
    locked = lock_template(template)
    old = version_content(locked.version)
    new = TemplateContent(**{name: changes.get(name, getattr(old, name)) for name in ("subject", "html", "text")})
    if new != old:
        compile_content(new)
        _retire(locked.version_id)
        locked.version = _new_version(new, template=locked)
        _detach_old_versions(locked)
    for name in ("name", "alias", "strict_variables", "sample_data", "sender", "reply_to"):
        setattr(locked, name, changes.get(name, getattr(locked, name)))
    locked.updated_at = Now()
    _save(locked)
    if changes:
        about = CodedText("workspaces.change", about=locked.name, words=list(changes))
        record_action(locked.workspace, AuditAction.TEMPLATE_CHANGED, about=about)
    return locked


@transaction.atomic
def delete_template(template: Template) -> None:
    """Delete a template. Versions used by accepted emails are kept as long as those emails."""
    version_id = (
        Template.objects.select_for_update().values_list("version_id", flat=True).filter(id=template.id).first()
    )
    deleted, _ = Template.objects.filter(id=template.id).delete()
    _retire(version_id)
    if deleted:
        record_action(template.workspace, AuditAction.TEMPLATE_DELETED, about=template.name)


def _compiled(field: str, source: str) -> CompiledTemplate:
    try:
        return compile_template(source)
    except TemplateSyntaxError as error:
        place: dict[str, Any] = {"field": field, "line": error.line, "column": error.column}
        raise TemplateSyntaxInvalid(CodedText("templates_app.syntax_error", error=error, **place), **place) from error


def _new_version(content: TemplateContent, *, template: Template | None = None) -> TemplateVersion:
    return TemplateVersion.objects.create(template=template, **asdict(content))


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
