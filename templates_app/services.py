"""Acts on templates, and the rendering of a version with data."""

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import Q
from django.db.models.functions import Now

from delivery.message.html_segments import TemplateSegments
from lib.ids import InvalidId, to_uuid
from templates_app.errors import AliasTaken, TemplateNotFound, TemplateOutputTooLarge, TemplateSyntaxInvalid
from templates_app.language.rendering import Mode, OutputTooLarge, render
from templates_app.language.syntax import Compiled, TemplateSyntaxError, compile_template
from templates_app.models import Template, TemplateVersion
from workspaces.errors import PlanLimitReached
from workspaces.models import Workspace

MAX_TEMPLATES = 1000
COMPILED_KEPT = 256


@dataclass(frozen=True)
class Content:
    """The three texts of a template, as their author wrote them."""

    subject: str
    html: str
    text: str = ""


@dataclass(frozen=True)
class CompiledContent:
    subject: Compiled
    html: Compiled
    text: Compiled


@dataclass(frozen=True)
class RenderedTemplate:
    """What one recipient gets; missing names variables that had no value, in order of appearance.

    woven: the HTML in pieces.
    """

    subject: str
    html: str
    text: str
    missing: tuple[str, ...]
    woven: TemplateSegments


@functools.lru_cache(maxsize=COMPILED_KEPT)
def compile_content(content: Content) -> CompiledContent:
    """Compile all three texts. Raises TemplateSyntaxInvalid naming field, line and column."""
    return _compile(content)


def preview_draft(content: Content, *, data: Mapping[str, Any]) -> RenderedTemplate:
    """Render what is still being written. Raises TemplateSyntaxInvalid, TemplateOutputTooLarge.

    Compiled for this once: every keystroke is another text, and would push out what is sent.
    """
    try:
        return render_content(_compile(content), data)
    except OutputTooLarge as error:
        raise TemplateOutputTooLarge(str(error)) from error


def _compile(content: Content) -> CompiledContent:
    return CompiledContent(
        subject=_compiled("subject", content.subject),
        html=_compiled("htmlContent", content.html),
        text=_compiled("textContent", content.text),
    )


def render_content(compiled: CompiledContent, data: Mapping[str, Any]) -> RenderedTemplate:
    """Render with data. Raises rendering.OutputTooLarge."""
    subject = render(compiled.subject, data, mode=Mode.SUBJECT)
    html = render(compiled.html, data, mode=Mode.HTML)
    text = render(compiled.text, data, mode=Mode.TEXT)
    missing = dict.fromkeys((*subject.missing, *html.missing, *text.missing))
    woven = TemplateSegments(html.pieces, html.escaped)
    return RenderedTemplate(subject.text, html.text, text.text, tuple(missing), woven)


def content_of(version: TemplateVersion) -> Content:
    return Content(subject=version.subject, html=version.html, text=version.text)


def find_template(workspace: Workspace, reference: str) -> Template:
    """Return the template that an id or an alias names. Raises TemplateNotFound."""
    by_id = Q(id=reference) if _is_id(reference) else Q()
    found = workspace.templates.select_related("version").filter(by_id | Q(alias=reference)).first()
    if found is None:
        raise TemplateNotFound(f"There is no template {reference[:80]!r} in this workspace.")
    return found


def preview_template(template: Template, *, data: Mapping[str, Any]) -> RenderedTemplate:
    """Render a template for looking at. Raises TemplateOutputTooLarge."""
    try:
        return render_content(compile_content(content_of(template.version)), data)
    except OutputTooLarge as error:
        raise TemplateOutputTooLarge(str(error)) from error


@transaction.atomic
def create_template(
    workspace: Workspace, *, name: str, content: Content, alias: str | None, strict_variables: bool
) -> Template:
    """Create a template. Raises TemplateSyntaxInvalid, AliasTaken, and PlanLimitReached at 1,000."""
    compile_content(content)
    Workspace.objects.select_for_update().get(id=workspace.id)
    if workspace.templates.count() >= MAX_TEMPLATES:
        detail = f"A workspace has at most {MAX_TEMPLATES} templates; delete one."
        raise PlanLimitReached(detail, resource="templates", limit=MAX_TEMPLATES)
    version = _new_version(content)
    template = Template(workspace=workspace, name=name, alias=alias, strict_variables=strict_variables, version=version)
    _save(template, force_insert=True)
    return template


@transaction.atomic
def update_template(template: Template, *, changes: Mapping[str, Any]) -> Template:
    """Change name, alias, strict_variables, subject, html or text; what was accepted keeps the old version.

    Raises TemplateSyntaxInvalid, AliasTaken.
    """
    locked = Template.objects.select_for_update(of=("self",)).select_related("version").get(id=template.id)
    old = content_of(locked.version)
    new = Content(**{name: changes.get(name, getattr(old, name)) for name in ("subject", "html", "text")})
    if new != old:
        compile_content(new)
        _retire(locked.version_id)
        locked.version = _new_version(new)
    for name in ("name", "alias", "strict_variables"):
        setattr(locked, name, changes.get(name, getattr(locked, name)))
    locked.updated_at = Now()
    _save(locked)
    return locked


@transaction.atomic
def delete_template(template: Template) -> None:
    """Delete the name; the versions that emails were accepted with stay as long as those do."""
    version_id = (
        Template.objects.select_for_update().values_list("version_id", flat=True).filter(id=template.id).first()
    )
    Template.objects.filter(id=template.id).delete()
    _retire(version_id)


def _compiled(field: str, source: str) -> Compiled:
    try:
        return compile_template(source)
    except TemplateSyntaxError as error:
        detail = f"{field}, line {error.line}, column {error.column}: {error.message}"
        raise TemplateSyntaxInvalid(detail, field=field, line=error.line, column=error.column) from error


def _new_version(content: Content) -> TemplateVersion:
    return TemplateVersion.objects.create(subject=content.subject, html=content.html, text=content.text)


def _retire(version_id: str | None) -> None:
    TemplateVersion.objects.filter(id=version_id).update(retired_at=Now())


def _save(template: Template, **options: Any) -> None:
    try:
        with transaction.atomic():
            template.save(**options)
    except IntegrityError as error:
        raise AliasTaken(f"Another template of this workspace has the alias {template.alias!r}.") from error
    template.refresh_from_db()


def _is_id(reference: str) -> bool:
    try:
        to_uuid(reference, prefix="tpl_")
    except InvalidId:
        return False
    return True
