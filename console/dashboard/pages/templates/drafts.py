"""Template drafts: validation and preview with sample data in the template editor."""

import json
import re
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest

from console.dashboard.ui.confirm import problem_message
from core.api.errors import InvalidJson
from core.api.parser import parse_object
from templates_app.content import TemplateContent, compile_content
from templates_app.errors import TemplateOutputTooLarge, TemplateSyntaxInvalid
from templates_app.language.sample_data import sample_data as sample_values
from templates_app.serializers import MAX_BYTES
from templates_app.services import preview_draft

# Field of the wire → field of the form.
FIELDS = {"subject": "subject", "htmlContent": "html", "textContent": "text"}


COLOR_SCHEME = re.compile(r"\(\s*prefers-color-scheme\s*:\s*(light|dark)\s*\)", re.IGNORECASE)


@dataclass(frozen=True)
class TemplateDraft:
    content: TemplateContent
    data: str


def read_draft(request: HttpRequest) -> TemplateDraft:
    """Read the editor's form, with each text truncated to the maximum size of a template."""
    subject, html, text, data = (
        request.POST.get(name, "")[:MAX_BYTES].replace("\r\n", "\n") for name in ("subject", "html", "text", "data")
    )
    return TemplateDraft(TemplateContent(subject, html, text), data)


def check_draft(draft: TemplateDraft) -> dict[str, Any]:
    """Return subject, html, text and missing; or an error with its field and, for a template, line and column."""
    try:
        data = parse_object((draft.data.strip() or "{}").encode("utf-8", "replace"))
    except InvalidJson as problem:
        return {"error": problem_message(problem), "field": "data"}
    try:
        rendered = preview_draft(draft.content, data=data)
    except TemplateSyntaxInvalid as problem:
        position = {name: problem.members[name] for name in ("line", "column")}
        return {"error": problem_message(problem), "field": FIELDS[problem.members["field"]], **position}
    except TemplateOutputTooLarge as problem:
        return {"error": problem_message(problem), "field": "data"}
    texts = {"subject": rendered.subject, "html": rendered.html, "text": rendered.text}
    return {**texts, "missing": list(rendered.missing)}


def apply_color_scheme(html: str, scheme: str) -> str:
    """Return HTML whose media queries see this scheme, light or dark, instead of that of the reader's browser."""
    return COLOR_SCHEME.sub(lambda query: "(min-width: 0)" if query[1].lower() == scheme else "(max-width: 0)", html)


def sample_data(content: TemplateContent) -> str:
    """Return JSON data with a value for each variable; `{}` if a template is invalid."""
    try:
        compiled = compile_content(content)
    except TemplateSyntaxInvalid:
        return "{}"
    sample = sample_values(compiled.subject, compiled.html, compiled.text)
    return json.dumps(sample, ensure_ascii=False, indent=2)
