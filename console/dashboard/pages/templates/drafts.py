"""Template drafts: validation and preview with sample data in the template editor."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest

from console.dashboard.ui.confirm import problem_message
from core.api.errors import InvalidJson
from core.api.parser import parse_object
from templates_app.errors import TemplateOutputTooLarge, TemplateSyntaxInvalid
from templates_app.language.nodes import Block, EachNode, IfNode, ValueNode
from templates_app.serializers import MAX_BYTES
from templates_app.services import TemplateContent, compile_content, preview_draft

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
    """Return JSON data with a value for each variable, the variable's name; `{}` if a template is invalid."""
    try:
        compiled = compile_content(content)
    except TemplateSyntaxInvalid:
        return "{}"
    sample: dict[str, Any] = {}
    for part in (compiled.subject, compiled.html, compiled.text):
        _fill(sample, part.body)
    return json.dumps(sample, ensure_ascii=False, indent=2)


def _fill(names: dict[str, Any], block: Block) -> None:
    for node in block.nodes:
        if isinstance(node, ValueNode):
            _put(names, node, node.path.rest[-1] if node.path.rest else node.path.head)
        elif isinstance(node, IfNode):
            _put(names, node, value=True)
            for branch in (node.when_true, node.when_false):
                _fill(names, branch)
        elif isinstance(node, EachNode):
            item: dict[str, Any] = {}
            _fill(item, node.body)
            _put(names, node, [item, item] if item else ["one", "two"])


def _put(names: dict[str, Any], node: ValueNode | IfNode | EachNode, value: Any) -> None:
    """Set the value at a path. References to the current item of a loop need no value."""
    *outer, last = _segments(node)
    if (not outer and last in {"this", ""}) or (outer and outer[0] == "this"):
        return
    for name in outer:
        inner = names.setdefault(name, {})
        if not isinstance(inner, dict):
            return
        names = inner
    names.setdefault(last, value)


def _segments(node: ValueNode | IfNode | EachNode) -> Iterator[str]:
    path = node.path
    yield from ("",) if path.is_loop_name else (path.head, *path.rest)
