"""Templates in requests of Postmark's API, and their validation."""

from typing import Any

from compat.drafts import as_object, rename_fields, with_html
from compat.postmark.template_language import translate_content
from templates_app.errors import TemplateOutputTooLarge, TemplateSyntaxInvalid
from templates_app.serializers import TemplateInput, new_template
from templates_app.services import TemplateContent, preview_draft

# https://postmarkapp.com/developer/api/templates-api
FIELDS = {"Name": "name", "Alias": "alias", "Subject": "subject", "HtmlBody": "htmlContent", "TextBody": "textContent"}
SECTIONS = {"Subject": "subject", "HtmlBody": "html", "TextBody": "text"}


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
    is_valid = all(section["ContentIsValid"] for section in sections.values())
    return {"AllContentIsValid": is_valid, **sections, "SuggestedTemplateModel": model}


def _section(name: str, text: Any, model: dict[str, Any]) -> dict[str, Any]:
    parts = {"subject": "", "html": "", "text": "", SECTIONS[name]: text if isinstance(text, str) else ""}
    try:
        rendered = preview_draft(TemplateContent(**parts), data=model)
    except (TemplateSyntaxInvalid, TemplateOutputTooLarge) as error:
        problem = {"Message": error.detail, "Line": error.members.get("line"), "CharacterPosition": None}
        return {"ContentIsValid": False, "ValidationErrors": [problem], "RenderedContent": None}
    return {"ContentIsValid": True, "ValidationErrors": [], "RenderedContent": getattr(rendered, SECTIONS[name])}
