"""Templates in requests of Postmark's API, and the places of their unsubscribe link."""

import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from html import escape
from typing import Any

from django.db.models import QuerySet

from core.delivery.message.footer import UNSUBSCRIBE_PLACEHOLDER
from core.delivery.message.unsubscribe_places import TAG_END, TAG_START, any_spelling
from core.workspaces.models import Workspace
from interfaces.compat.drafts import as_object, read_choice, rename_fields, with_html
from interfaces.compat.errors import invalid_field
from interfaces.compat.postmark.errors import LAYOUT_PLACEHOLDER
from interfaces.compat.postmark.templates.language import translate_sections
from templates_app.content import RenderedContent, TemplateContent, compile_draft
from templates_app.errors import TemplateOutputTooLarge, TemplateSyntaxInvalid
from templates_app.language.sample_data import sample_data
from templates_app.models import Template
from templates_app.serializers import TemplateInput, new_template
from templates_app.services import preview_draft

# The place of the unsubscribe link, as the value of an attribute, where an editor may have put a URL before it, or as
# text; it may be encoded. https://postmarkapp.com/support/article/1208-how-to-add-an-unsubscribe-link
PLACEHOLDER = rf"(?<!\\){TAG_START}pm{any_spelling(':')}"
UNSUBSCRIBE_TAG = re.compile(
    rf"""(?P<attribute>=\s{{0,9}}["']?[^\s"'<>=]{{0,200}}?)?"""
    rf"""{PLACEHOLDER}unsubscribe(?P<url>_url)?(?:\s+label="(?P<label>[^"{{}}]{{0,200}})")?"""
    rf"""{TAG_END}"""
)
OTHER_PLACEHOLDER = re.compile(PLACEHOLDER + r"(?P<name>[^\s{}]{0,50})")
SUPPORTED_PLACEHOLDERS = "Use {{{ pm:unsubscribe }}} or {{{ pm:unsubscribe_url }}}, in a body."
# The place of a template in its layout. Only a layout without it may have the place in the form of Postrider.
LAYOUT_CONTENT = re.compile(r"\{\{\{?\s*@content\s*\}?\}\}")
OWN_CONTENT = re.compile(r"\{\{\{\s*content\s*\}\}\}")
CONTENT = "{{{content}}}"
LAYOUT = "Layout"
KINDS = {"Standard": Template.TemplateKind.TEMPLATE, LAYOUT: Template.TemplateKind.LAYOUT}
# https://postmarkapp.com/developer/api/templates-api
FIELDS = {
    "Name": "name",
    "Alias": "alias",
    "Subject": "subject",
    "HtmlBody": "htmlContent",
    "TextBody": "textContent",
    "LayoutTemplate": "layoutId",
    "kind": "kind",
}
SECTIONS = {"Subject": "subject", "HtmlBody": "html", "TextBody": "text"}


def translate_content(body: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Return the texts of a template that a request has, in the language of Postrider. Raises InvalidFields."""
    names = SECTIONS if kind == Template.TemplateKind.TEMPLATE else SECTIONS.keys() - {"Subject"}
    return {name: _translate(body[name], name, kind) for name in names if name in body}


def _translate(text: Any, name: str, kind: str) -> Any:
    if not isinstance(text, str) or not text:
        return text
    if kind == Template.TemplateKind.LAYOUT:
        text = _with_content(text, name)
    elif LAYOUT_CONTENT.search(text):
        raise invalid_field(name, "{{{@content}}} belongs to a layout.", code=LAYOUT_PLACEHOLDER)
    return translate_sections(with_links(text, name))


def _with_content(text: str, name: str) -> str:
    """Return a part of a layout with the place of the template in the form of Postrider. Raises InvalidFields."""
    if LAYOUT_CONTENT.search(text):
        # A value of this name stays one.
        text = LAYOUT_CONTENT.sub(CONTENT, OWN_CONTENT.sub("{{{this.content}}}", text))
    if len(OWN_CONTENT.findall(text)) != 1:
        message = f"The layout content placeholder must be present in {name} exactly once: {{{{{{@content}}}}}}."
        raise invalid_field(name, message, code=LAYOUT_PLACEHOLDER)
    return text


def with_postmark_content(text: str) -> str:
    """Return a part of a layout with the place of the template as Postmark writes it."""
    return OWN_CONTENT.sub("{{{@content}}}", text)


def with_links(text: Any, name: str) -> Any:
    """Return a part with the places of the unsubscribe link in the form of Postrider; any other value unchanged.

    In text and in the value of an attribute the placeholder is the link's URL, elsewhere in HTML the whole link.
    Raises InvalidFields for a placeholder with another meaning.
    """
    if not isinstance(text, str):
        return text
    linked = UNSUBSCRIBE_TAG.sub(WRITERS[name], text) if name in WRITERS else text
    if other := OTHER_PLACEHOLDER.search(linked):
        raise invalid_field(name, f"{{{{{{ pm:{other['name']} }}}}}} is not supported here. {SUPPORTED_PLACEHOLDERS}")
    return linked


def _link(tag: re.Match[str]) -> str:
    if tag["attribute"] or tag["url"]:
        return _url(tag)
    return f'<a href="{UNSUBSCRIBE_PLACEHOLDER}">{escape(tag["label"] or "Unsubscribe")}</a>'


def _url(tag: re.Match[str]) -> str:
    return (tag["attribute"] or "") + UNSUBSCRIBE_PLACEHOLDER


# The parts that may have the unsubscribe link.
WRITERS = {"HtmlBody": _link, "TextBody": _url}


def read_template(body: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of create_template. Raises ValidationError and InvalidFields."""
    kind = read_kind(body)
    native = {"htmlContent": "", **_native(body, kind)}
    if kind == Template.TemplateKind.LAYOUT:
        # Postmark gives every layout an alias, by which templates name it.
        native = {**native, "alias": native.get("alias") or f"layout-{secrets.token_hex(4)}"}
        native["htmlContent"] = native["htmlContent"] or CONTENT
    return new_template(TemplateInput().run_validation(with_html(native)))


def read_changes(body: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return the changes of update_template. Raises ValidationError and InvalidFields.

    kind: that of the template, which does not change.
    """
    native = {name: value for name, value in _native(body, kind).items() if name != "kind"}
    changes: dict[str, Any] = TemplateInput(partial=True).run_validation(native)
    return changes


def read_kind(body: Mapping[str, Any]) -> str:
    """Return the kind of the template in a request. Raises InvalidFields."""
    return (
        read_choice(body.get("TemplateType") or "Standard", KINDS, field="TemplateType")
        or Template.TemplateKind.TEMPLATE
    )


def _native(body: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Return the fields of `/v1`. An empty LayoutTemplate removes the layout; null leaves it as it is."""
    without_subject = {name: value for name, value in body.items() if name != "Subject" or kind == KINDS["Standard"]}
    layout = {"LayoutTemplate": body["LayoutTemplate"]} if body.get("LayoutTemplate") else {}
    native = rename_fields({**without_subject, **layout, "kind": kind, **translate_content(body, kind)}, FIELDS)
    return {**native, "layoutId": None} if body.get("LayoutTemplate") == "" else native


def filter_templates(
    rows: QuerySet[Template], query: Mapping[str, str], layouts: Mapping[str | None, str]
) -> QuerySet[Template]:
    """Return the templates of a type, or with a layout, as the query asks. Partials are in no type."""
    given = {name.lower(): text for name, text in query.items() if text}
    types = {"all": [*KINDS.values()], **{name.lower(): [kind] for name, kind in KINDS.items()}}
    kinds = read_choice(given.get("templatetype", "all").lower(), types, field="TemplateType")
    rows = rows.filter(kind__in=kinds or [])
    if "layouttemplate" not in given:
        return rows
    ids = [id_ for id_, alias in layouts.items() if alias == given["layouttemplate"]]
    return rows.filter(version__layout_id__in=ids)


def validate(workspace: Workspace, body: dict[str, Any]) -> dict[str, Any]:
    """Return whether each part of a template is valid, and the part rendered with the test model, in its layout."""
    model, kind = as_object(body.get("TestRenderModel"), "TestRenderModel"), read_kind(body)
    content = translate_content(body, kind)
    layout = body.get("LayoutTemplate") or None
    render = partial(preview_draft, data=model, workspace=workspace, kind=kind)
    sections = {name: _section(name, content.get(name), layout, render) for name in SECTIONS}
    valid = [name for name, section in sections.items() if section["ContentIsValid"]]
    suggested = _with_values(_suggested_model({name: content.get(name) for name in valid}), model)
    return {"AllContentIsValid": len(valid) == len(sections), **sections, "SuggestedTemplateModel": suggested}


def _suggested_model(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return a model with a value for each variable of valid parts."""
    compiled = compile_draft(_template_content(content))
    return sample_data(compiled.subject, compiled.html, compiled.text, suffix="_Value")


def _with_values(suggested: dict[str, Any], model: dict[str, Any]) -> dict[str, Any]:
    """Return the suggested model with the values of the test model in their places."""
    merged = {**suggested, **model}
    for name in suggested.keys() & model.keys():
        if isinstance(suggested[name], dict) and isinstance(model[name], dict):
            merged[name] = _with_values(suggested[name], model[name])
    return merged


def _template_content(content: Mapping[str, Any]) -> TemplateContent:
    """Return the content with the parts that are texts, and without the others."""
    subject, html, plain = (text if isinstance(text := content.get(name), str) else "" for name in SECTIONS)
    return TemplateContent(subject, html, plain)


def _section(name: str, text: Any, layout: str | None, render: Callable[..., RenderedContent]) -> dict[str, Any]:
    try:
        rendered = render(replace(_template_content({name: text}), layout_id=layout))
    except (TemplateSyntaxInvalid, TemplateOutputTooLarge) as error:
        problem = {"Message": error.detail, "Line": error.members.get("line"), "CharacterPosition": None}
        return {"ContentIsValid": False, "ValidationErrors": [problem], "RenderedContent": None}
    shown = with_postmark_content(getattr(rendered, SECTIONS[name]))
    return {"ContentIsValid": True, "ValidationErrors": [], "RenderedContent": shown}
