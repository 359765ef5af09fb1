"""What an email says: its own content, or a template's with its data."""

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
    Content,
    RenderedTemplate,
    compile_content,
    content_of,
    render_content,
)

Warnings = list[dict[str, Any]]


@dataclass(frozen=True)
class RenderedContent:
    """The three texts of one email as its recipients get them; woven is the HTML of a template, in pieces."""

    subject: str
    html: str
    text: str
    woven: TemplateSegments | None = None


def compile_wording(content: Content, *, subject: str | None) -> CompiledContent:
    """Compile a template; a request's own subject wins over the template's and is rendered too.

    Raises TemplateSyntaxInvalid for a request's subject; a template was compiled when it was made.
    """
    return compile_content(content if subject is None else Content(subject, content.html, content.text))


def render_wording(
    compiled: CompiledContent, data: Mapping[str, Any], *, field: str = "templateData"
) -> RenderedTemplate:
    """Render. Raises TemplateOutputTooLarge naming the field whose data did it."""
    try:
        return render_content(compiled, data)
    except OutputTooLarge as error:
        raise TemplateOutputTooLarge(f"{field}: {error}", field=field) from error


def wording_of(email: Email) -> RenderedContent:
    """Return what an accepted email says."""
    if email.template_version is None:
        content = email.content
        return RenderedContent(email.subject, content.html if content else "", content.text if content else "")
    return render_stored(email.subject, content_of(email.template_version), email.template_data)


def render_stored(subject: str, content: Content, data: str | None) -> RenderedContent:
    """Return what a template's content says with stored data; the subject was rendered when it was accepted."""
    rendered = render_content(compile_content(content), json.loads(data or "{}"))
    return RenderedContent(subject, rendered.html, rendered.text, rendered.woven)


def warn_of_missing(missing: Mapping[str, list[int]] | tuple[str, ...]) -> Warnings:
    """Return a warning for each variable without a value; of a batch it names the recipients' indexes."""
    message = "The template names this variable, and the data has no value for it; it was rendered as nothing."
    if isinstance(missing, tuple):
        return (
            [{"code": "missing_template_variables", "message": message, "variables": list(missing)}] if missing else []
        )
    return [
        {"code": "missing_template_variables", "message": message, "variable": name, "indexes": indexes}
        for name, indexes in missing.items()
    ]
