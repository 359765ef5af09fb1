"""Rendered content of an email: its own, or a template rendered with its data."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from delivery.message.html_segments import TemplateSegments
from emails.models import Email
from templates_app.errors import TemplateOutputTooLarge
from templates_app.language.rendering import OutputTooLarge
from templates_app.services import (
    CompiledContent,
    RenderedTemplate,
    TemplateContent,
    compile_content,
    render_content,
    version_content,
)

Warnings = list[dict[str, Any]]


@dataclass(frozen=True)
class RenderedContent:
    """The subject, HTML and text of one email; segments is the HTML of a template, in pieces."""

    subject: str
    html: str
    text: str
    segments: TemplateSegments | None = None


def compile_with_subject(content: TemplateContent, *, subject: str | None) -> CompiledContent:
    """Compile a template. The request's subject overrides that of the template and is rendered, too.

    Raises TemplateSyntaxInvalid for the request's subject; the template was compiled when it was created.
    """
    return compile_content(content if subject is None else TemplateContent(subject, content.html, content.text))


def render_compiled(
    compiled: CompiledContent, data: Mapping[str, Any], *, field: str = "templateData"
) -> RenderedTemplate:
    """Render a compiled template. Raises TemplateOutputTooLarge, which names the field of the data."""
    try:
        return render_content(compiled, data)
    except OutputTooLarge as error:
        raise TemplateOutputTooLarge(f"{field}: {error}", field=field) from error


def render_email(email: Email) -> RenderedContent:
    """Return the rendered content of an accepted email."""
    if email.template_version is None:
        content = email.content
        return RenderedContent(email.subject, content.html if content else "", content.text if content else "")
    return render_stored_template(email.subject, version_content(email.template_version), email.template_data)


def render_stored_template(subject: str, content: TemplateContent, data: str | None) -> RenderedContent:
    """Render a template's content with stored data; the subject was rendered on acceptance."""
    rendered = render_content(compile_content(content), json.loads(data or "{}"))
    return RenderedContent(subject, rendered.html, rendered.text, rendered.segments)


def missing_variable_warnings(missing: Mapping[str, list[int]] | tuple[str, ...]) -> Warnings:
    """Return warnings about variables without a value; in a batch, one per variable with recipient indexes."""
    message = "The data has no value for this template variable; it was rendered as an empty string."
    if isinstance(missing, tuple):
        return (
            [{"code": "missing_template_variables", "message": message, "variables": list(missing)}] if missing else []
        )
    return [
        {"code": "missing_template_variables", "message": message, "variable": name, "indexes": indexes}
        for name, indexes in missing.items()
    ]
