"""Rendered content of an email: its own, or a template rendered with its data."""

import json
from collections.abc import Mapping
from typing import Any

from emails.models import Content, Email
from templates_app.errors import TemplateOutputTooLarge
from templates_app.language.rendering import OutputTooLarge, RenderBudget
from templates_app.models import TemplateVersion
from templates_app.services import (
    CompiledContent,
    RenderedContent,
    TemplateContent,
    compile_content,
    render_content,
    version_content,
)


def compile_with_subject(content: TemplateContent, *, subject: str | None) -> CompiledContent:
    """Compile a template. The request's subject overrides that of the template and is rendered, too.

    Raises TemplateSyntaxInvalid for the request's subject; the template was compiled when it was created.
    """
    return compile_content(content if subject is None else TemplateContent(subject, content.html, content.text))


def render_compiled(
    compiled: CompiledContent,
    data: Mapping[str, Any],
    *,
    field: str = "templateData",
    budget: RenderBudget | None = None,
) -> RenderedContent:
    """Render a compiled template. Raises TemplateOutputTooLarge, which names the field of the data."""
    try:
        return render_content(compiled, data, budget=budget)
    except OutputTooLarge as error:
        raise TemplateOutputTooLarge(f"{field}: {error}", field=field) from error


def render_email(email: Email) -> RenderedContent:
    """Return the rendered content of an accepted email."""
    return render_stored(
        email.content, email.template_version, subject=email.subject, template_data=email.template_data
    )


def render_stored(
    content: Content | None, version: TemplateVersion | None, *, subject: str, template_data: str | None
) -> RenderedContent:
    """Return stored content, or a template version rendered with data; the subject was rendered on acceptance."""
    if version is None:
        return RenderedContent(subject, content.html if content else "", content.text if content else "")
    compiled = compile_content(version_content(version))
    rendered = render_content(compiled, json.loads(template_data or "{}"))
    return RenderedContent(subject, rendered.html, rendered.text)
