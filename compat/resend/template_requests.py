"""Templates in requests of Resend's API: fields, and fallback values of variables."""

import json
import re
from typing import Any

from api.fields import TextField
from compat.drafts import as_objects, rename_fields
from compat.errors import invalid_field
from templates_app.language.scanner import MAX_TAGS
from templates_app.models import TemplateVersion
from templates_app.serializers import MAX_SUBJECT_LENGTH, TemplateInput, new_template

# https://resend.com/docs/api-reference/templates/create-template
FIELDS = {"name": "name", "alias": "alias", "subject": "subject", "html": "htmlContent", "text": "textContent"}
CONTENT = ("subject", "html", "text")
MAX_VARIABLES = 50
MAX_FALLBACK_LENGTH = 2000
VARIABLE = re.compile("[A-Za-z0-9_]{1,50}")


class ResendTemplateInput(TemplateInput):
    """The fields of `/v1` for a template that may have no subject: its emails then bring one."""

    subject = TextField(max_length=MAX_SUBJECT_LENGTH, required=False, allow_blank=True)


def read_template(body: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of create_template. Raises ValidationError and InvalidFields."""
    fallbacks = _read_fallbacks(body)
    values = ResendTemplateInput().run_validation({"subject": "", **_native(body, fallbacks)})
    # Resend requires a value for each declared variable without a fallback value.
    return {**new_template(values), "strict_variables": bool(body.get("variables"))}


def read_changes(body: dict[str, Any], *, version: TemplateVersion) -> dict[str, Any]:
    """Return the changes of update_template. Raises ValidationError and InvalidFields.

    version: the content that gets the fallback values, where the request has no other.
    """
    fallbacks = _read_fallbacks(body)
    if body.get("variables") is None:
        return _changes(_native(body, fallbacks))
    changed = {name: value for name, value in body.items() if value is not None}
    content = {name: getattr(version, name) for name in CONTENT}
    return {**_changes(_native({**content, **changed}, fallbacks)), "strict_variables": bool(body["variables"])}


def _changes(native: dict[str, Any]) -> dict[str, Any]:
    changes: dict[str, Any] = ResendTemplateInput(partial=True).run_validation(native)
    return changes


def _native(body: dict[str, Any], fallbacks: dict[str, str]) -> dict[str, Any]:
    filled = {name: _with_fallbacks(body[name], fallbacks) for name in CONTENT if name in body}
    return rename_fields({**body, **filled}, FIELDS)


def _read_fallbacks(body: dict[str, Any]) -> dict[str, str]:
    """Return the fallback values of the variables that have one. Raises InvalidFields."""
    variables = as_objects(body.get("variables"), "variables", at_most=MAX_VARIABLES)
    values = {_read_key(variable): variable.get("fallback_value") for variable in variables}
    return {key: _read_fallback(value) for key, value in values.items() if value is not None}


def _read_key(variable: dict[str, Any]) -> str:
    key = variable.get("key")
    if not isinstance(key, str) or not VARIABLE.fullmatch(key):
        raise invalid_field("variables", "A variable needs a `key` of A-Z, a-z, 0-9 and underscores.")
    return key


def _read_fallback(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    if isinstance(value, dict | list) or len(text) > MAX_FALLBACK_LENGTH:
        message = f"A fallback value is a string of at most {MAX_FALLBACK_LENGTH:,} characters, or a number."
        raise invalid_field("variables", message)
    return text


def _with_fallbacks(source: Any, fallbacks: dict[str, str]) -> Any:
    """Return a source in which the variables have their fallback values as defaults: `{{{NAME|"there"}}}`."""
    if not fallbacks or not isinstance(source, str):
        return source
    names = "|".join(fallbacks)
    # A backslash escapes the braces. A variable that has a default keeps it.
    tag = re.compile(rf"(?<!\\)(\{{\{{\{{?)\s*({names})\s*(?=\}}\}})")
    # A template with more tags than this is refused; until then, the source grows no further.
    return tag.sub(lambda match: f"{match[1]}{match[2]}|{_quoted(fallbacks[match[2]])}", source, count=MAX_TAGS)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
