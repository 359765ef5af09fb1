"""What a template makes of sample data while it is still being written."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest

from api.errors import InvalidJson
from api.parser import parse_object
from templates_app.errors import TemplateOutputTooLarge, TemplateSyntaxInvalid
from templates_app.language.nodes import Block, Choice, Loop, Value
from templates_app.serializers import MAX_BYTES
from templates_app.services import Content, compile_content, preview_draft

# Field of the wire → field of the form.
FIELDS = {"subject": "subject", "htmlContent": "html", "textContent": "text"}


@dataclass(frozen=True)
class Draft:
    content: Content
    data: str


def read_draft(request: HttpRequest) -> Draft:
    """Return what the editor's form holds, each text cut where no template goes on."""
    subject, html, text, data = (
        request.POST.get(name, "")[:MAX_BYTES].replace("\r\n", "\n") for name in ("subject", "html", "text", "data")
    )
    return Draft(Content(subject, html, text), data)


def checked(draft: Draft) -> dict[str, Any]:
    """Return subject, html, text and missing; or the error with its field and, of a template, line and column."""
    try:
        data = parse_object((draft.data.strip() or "{}").encode("utf-8", "replace"))
    except InvalidJson as refusal:
        return {"error": refusal.detail, "field": "data"}
    try:
        rendered = preview_draft(draft.content, data=data)
    except TemplateSyntaxInvalid as refusal:
        place = {name: refusal.members[name] for name in ("line", "column")}
        return {"error": refusal.detail, "field": FIELDS[refusal.members["field"]], **place}
    except TemplateOutputTooLarge as refusal:
        return {"error": refusal.detail, "field": "data"}
    texts = {"subject": rendered.subject, "html": rendered.html, "text": rendered.text}
    return {**texts, "missing": list(rendered.missing)}


def sample_of(content: Content) -> str:
    """Return data, as JSON, with a value for every variable: its own name; none for what does not compile."""
    try:
        compiled = compile_content(content)
    except TemplateSyntaxInvalid:
        return "{}"
    sample: dict[str, Any] = {}
    for one in (compiled.subject, compiled.html, compiled.text):
        _fill(sample, one.body)
    return json.dumps(sample, ensure_ascii=False, indent=2)


def _fill(names: dict[str, Any], block: Block) -> None:
    for node in block.nodes:
        if isinstance(node, Value):
            _put(names, node, node.path.rest[-1] if node.path.rest else node.path.head)
        elif isinstance(node, Choice):
            _put(names, node, value=True)
            for branch in (node.when_true, node.when_false):
                _fill(names, branch)
        elif isinstance(node, Loop):
            item: dict[str, Any] = {}
            _fill(item, node.body)
            _put(names, node, [item, item] if item else ["one", "two"])


def _put(names: dict[str, Any], node: Value | Choice | Loop, value: Any) -> None:
    """Set a value where a path leads; what an item of a loop calls itself needs none."""
    *outer, last = _segments(node)
    if (not outer and last in {"this", ""}) or (outer and outer[0] == "this"):
        return
    for name in outer:
        inner = names.setdefault(name, {})
        if not isinstance(inner, dict):
            return
        names = inner
    names.setdefault(last, value)


def _segments(node: Value | Choice | Loop) -> Iterator[str]:
    path = node.path
    yield from ("",) if path.is_of_a_loop else (path.head, *path.rest)
