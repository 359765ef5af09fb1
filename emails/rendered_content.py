"""Rendered content of an email: its own, or a template rendered with its data."""

import json
from collections.abc import Mapping
from typing import Any

from emails.models import Content, Email
from templates_app.content import CompiledContent, RenderedContent, SetParts, compile_version, render_content
from templates_app.errors import TemplateOutputTooLarge
from templates_app.language.rendering import OutputTooLarge, RenderBudget
from templates_app.models import TemplateVersion


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
    """Return the rendered content of an accepted email; only the subject if its content is not kept."""
    if not email.keeps_content:
        return RenderedContent(email.subject, "", "")
    return render_stored(
        email.content,
        email.template_version,
        subject=email.subject,
        template_data=email.template_data,
        parts=SetParts(email.template_set_id) if email.template_set_id else None,
        locale=email.locale,
    )


def render_stored(
    content: Content | None,
    version: TemplateVersion | None,
    *,
    subject: str,
    template_data: str | None,
    parts: SetParts | None,
    locale: str | None,
) -> RenderedContent:
    """Return stored content, or a template version rendered with data; the subject was rendered on acceptance.

    parts: the layout and partials that it was accepted with.
    locale: the language that the request asked for.
    """
    if version is None:
        return RenderedContent(subject, content.html if content else "", content.text if content else "")
    compiled = compile_version(version, parts=parts, locale=locale)
    rendered = render_content(compiled, json.loads(template_data or "{}"))
    return RenderedContent(subject, rendered.html, rendered.text)
