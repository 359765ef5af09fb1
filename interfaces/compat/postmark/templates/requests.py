"""Templates in requests of Postmark's API, and the places of their unsubscribe link."""

import re
from collections.abc import Mapping
from html import escape
from typing import Any

from core.delivery.message.footer import UNSUBSCRIBE_PLACEHOLDER
from core.delivery.message.unsubscribe_places import TAG_END, TAG_START, any_spelling
from interfaces.compat.drafts import as_object, rename_fields, with_html
from interfaces.compat.errors import endpoint_absent, invalid_field
from interfaces.compat.postmark.templates.language import translate_sections
from templates_app.content import TemplateContent, compile_draft
from templates_app.errors import TemplateOutputTooLarge, TemplateSyntaxInvalid
from templates_app.language.sample_data import sample_data
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
LAYOUT_CONTENT = re.compile(r"\{\{\{?\s*@content\s*\}?\}\}")
# https://postmarkapp.com/developer/api/templates-api
FIELDS = {
    "Name": "name",
    "Alias": "alias",
    "Subject": "subject",
    "HtmlBody": "htmlContent",
    "TextBody": "textContent",
}
SECTIONS = {"Subject": "subject", "HtmlBody": "html", "TextBody": "text"}


def translate_content(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return the texts of a template that a request has, in the language of Postrider. Raises NotFound for a layout."""
    if body.get("TemplateType") == "Layout" or body.get("LayoutTemplate"):
        raise endpoint_absent("Layouts are not available here. Put the layout into the template.")
    return {name: _translate(body[name], name) for name in SECTIONS if name in body}


def _translate(text: Any, name: str) -> Any:
    if not isinstance(text, str):
        return text
    if LAYOUT_CONTENT.search(text):
        raise endpoint_absent(f"{name}: {{{{{{@content}}}}}} belongs to a layout, and layouts are not available here.")
    return translate_sections(with_links(text, name))


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
    """Return the arguments of create_template. Raises ValidationError."""
    native = rename_fields({**body, **translate_content(body)}, FIELDS)
    return new_template(TemplateInput().run_validation(with_html({"htmlContent": "", **native})))


def read_changes(body: dict[str, Any]) -> dict[str, Any]:
    """Return the changes of update_template. Raises ValidationError."""
    changes: dict[str, Any] = TemplateInput(partial=True).run_validation(
        rename_fields({**body, **translate_content(body)}, FIELDS)
    )
    return changes


def validate(body: dict[str, Any]) -> dict[str, Any]:
    """Return whether each part of a template is valid, and the part rendered with the test model."""
    model = as_object(body.get("TestRenderModel"), "TestRenderModel")
    content = translate_content(body)
    sections = {name: _section(name, content.get(name), model) for name in SECTIONS}
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


def _section(name: str, text: Any, model: dict[str, Any]) -> dict[str, Any]:
    try:
        rendered = preview_draft(_template_content({name: text}), data=model)
    except (TemplateSyntaxInvalid, TemplateOutputTooLarge) as error:
        problem = {"Message": error.detail, "Line": error.members.get("line"), "CharacterPosition": None}
        return {"ContentIsValid": False, "ValidationErrors": [problem], "RenderedContent": None}
    return {"ContentIsValid": True, "ValidationErrors": [], "RenderedContent": getattr(rendered, SECTIONS[name])}
