"""Template drafts: validation and preview with sample data in the template editor."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.http import QueryDict

from console.dashboard.pages.templates.languages import field_name, field_of_wire, inherits_name, own_texts, split_tags
from console.dashboard.ui.confirm import problem_message
from core.api.errors import InvalidJson
from core.api.parser import parse_object
from core.workspaces.models import Workspace
from templates_app.content import PARTS, RenderedContent, TemplateContent
from templates_app.errors import TemplateNotFound, TemplateOutputTooLarge, TemplateSyntaxInvalid
from templates_app.language.locales import normalize_locale
from templates_app.language.sample_data import sample_data as sample_values
from templates_app.models import Template
from templates_app.serializers import MAX_BYTES, MAX_LOCALES
from templates_app.services import compile_linked_draft, preview_draft, preview_user

COLOR_SCHEME = re.compile(r"\(\s*prefers-color-scheme\s*:\s*(light|dark)\s*\)", re.IGNORECASE)


@dataclass(frozen=True)
class TemplateDraft:
    """The unsaved content of the editor.

    locale: the language that is shown; None for that of the template itself.
    part, user: the layout or partial that is edited, and the template in which it is shown.
    """

    workspace: Workspace
    kind: str
    content: TemplateContent
    data: str
    locale: str | None = None
    part: Template | None = None
    user: Template | None = None


def read_draft(
    posted: QueryDict, *, workspace: Workspace, part: Template | None = None, user: Template | None = None
) -> TemplateDraft:
    """Read the editor's form, with each text truncated to the maximum size of a template."""
    kind, shown = posted.get("kind", ""), posted.get("shown", "")
    locales = {locale: _language(posted, locale) for locale in posted.getlist("language")[:MAX_LOCALES]}
    content = TemplateContent(
        **{part: _text(posted, part) for part in PARTS},
        locale=_locale(posted.get("locale", "")),
        locales={_locale(locale): texts for locale, texts in locales.items() if _locale(locale)},
        fallback=tuple(filter(None, map(_locale, split_tags(posted.get("fallback", ""))))),
        layout_id=posted.get("layout") or None,
    )
    return TemplateDraft(
        workspace,
        kind if kind in Template.TemplateKind else Template.TemplateKind.TEMPLATE,
        content,
        _text(posted, "data"),
        locale=_locale(shown) or None,
        part=part,
        user=user,
    )


def check_draft(draft: TemplateDraft) -> dict[str, Any]:
    """Return subject, html, text, locale and missing; or an error with its field and, for a template, its place.

    The place is line and column, from 1.
    """
    try:
        data = parse_object((draft.data.strip() or "{}").encode("utf-8", "replace"))
    except InvalidJson as problem:
        return {"error": problem_message(problem), "field": "data"}
    try:
        rendered = _render(draft, data)
    except TemplateSyntaxInvalid as problem:
        position = {name: problem.members[name] for name in ("line", "column")}
        return {"error": problem_message(problem), "field": field_of_wire(problem.members["field"]), **position}
    except TemplateNotFound as problem:
        return {"error": problem_message(problem), "field": "layout"}
    except TemplateOutputTooLarge as problem:
        return {"error": problem_message(problem), "field": "data"}
    texts = {"subject": rendered.subject, "html": rendered.html, "text": rendered.text, "locale": rendered.locale}
    return {**texts, "missing": list(rendered.missing)}


def apply_color_scheme(html: str, scheme: str) -> str:
    """Return HTML whose media queries see this scheme, light or dark, instead of that of the reader's browser."""
    return COLOR_SCHEME.sub(lambda query: "(min-width: 0)" if query[1].lower() == scheme else "(max-width: 0)", html)


def sample_data(content: TemplateContent, *, workspace: Workspace | None, kind: str) -> str:
    """Return JSON data with a value for each variable, also of its layout and partials; `{}` for invalid content."""
    try:
        compiled = compile_linked_draft(content, workspace=workspace, kind=kind, locale=None)
    except (TemplateSyntaxInvalid, TemplateNotFound):
        return "{}"
    sample = sample_values(compiled.subject, compiled.html, compiled.text)
    return json.dumps(sample, ensure_ascii=False, indent=2)


def _render(draft: TemplateDraft, data: Mapping[str, Any]) -> RenderedContent:
    if draft.part and draft.user:
        return preview_user(draft.part, draft.user, draft.content, locale=draft.locale)
    return preview_draft(draft.content, data=data, workspace=draft.workspace, kind=draft.kind, locale=draft.locale)


def _language(posted: QueryDict, locale: str) -> dict[str, str]:
    texts = {part: _text(posted, field_name(part, locale)) for part in PARTS}
    return own_texts(texts, inherits_text=inherits_name(locale) in posted)


def _locale(tag: str) -> str:
    """Return a tag in its usual case; empty for one that is not finished. The form refuses it."""
    try:
        return normalize_locale(tag.strip())
    except ValueError:
        return ""


def _text(posted: QueryDict, name: str) -> str:
    return posted.get(name, "")[:MAX_BYTES].replace("\r\n", "\n")
