"""Templates in requests of Resend's API: fields, fallback values of variables, and defaults of emails."""

import json
import re
from collections.abc import Sequence
from typing import Any

from core.api.fields import TextField
from core.lib.email_addresses import split_address_list
from core.lib.ids import from_any_spelling
from core.workspaces.key_limits import NO_LIMITS
from core.workspaces.models import Workspace
from interfaces.compat.drafts import as_objects, rename_fields, valid_field
from interfaces.compat.errors import invalid_field
from interfaces.compat.resend.requests import with_unsubscribe_links
from templates_app.language.scanner import MAX_TAGS, TagKind, scan
from templates_app.models import Template, TemplateVersion
from templates_app.serializers import MAX_SUBJECT_LENGTH, TemplateInput, new_template
from templates_app.services import find_templates

# https://resend.com/docs/api-reference/templates/create-template
FIELDS = {"name": "name", "alias": "alias", "subject": "subject", "html": "htmlContent", "text": "textContent"}
LINKED = ("html", "text")
CONTENT = ("subject", *LINKED)
# The addresses that emails have by default; their own come first.
# https://resend.com/docs/dashboard/templates/introduction
ADDRESSES = {"from": "sender", "reply_to": "reply_to"}
MAX_VARIABLES = 50
MAX_FALLBACK_LENGTH = 2000
VARIABLE = re.compile("[A-Za-z0-9_]{1,50}")
VALUES = frozenset({TagKind.VALUE, TagKind.RAW_VALUE})
# A value with its default, if it has one. A backslash escapes the braces.
TAG = re.compile(r"""(?<!\\)(\{\{\{?)\s*([\w.-]+)\s*(\|\s*(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')\s*)?(?=\}\})""")


class ResendTemplateInput(TemplateInput):
    """The fields of `/v1` for a template that may have no subject: its emails then bring one."""

    subject = TextField(max_length=MAX_SUBJECT_LENGTH, required=False, allow_blank=True)


def read_template(body: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of create_template. Raises ValidationError and InvalidFields."""
    fallbacks = _read_fallbacks(body)
    values = ResendTemplateInput().run_validation({"subject": "", **_native(body, fallbacks)})
    # Resend requires a value for each declared variable without a fallback value.
    return {**new_template(values), **_addresses(body), "strict_variables": bool(body.get("variables"))}


def read_changes(body: dict[str, Any], *, version: TemplateVersion) -> dict[str, Any]:
    """Return the changes of update_template. Raises ValidationError and InvalidFields.

    version: keeps the fallback values of variables that the request does not name, also in new content.
    """
    given = _read_fallbacks(body)
    kept = {key: default for key, default in read_variables(version).items() if default is not None}
    changed = {name: value for name, value in body.items() if value is not None}
    changes = _native(changed, {**kept, **given})
    if body.get("variables") is None:
        return {**_changes(changes), **_addresses(body)}
    unchanged = {name: getattr(version, name) for name in CONTENT if name not in changed}
    stored = {FIELDS[name]: _with_new_fallbacks(source, given) for name, source in unchanged.items() if source}
    return {**_changes(stored | changes), **_addresses(body), "strict_variables": bool(body["variables"])}


def read_variables(version: TemplateVersion) -> dict[str, str | None]:
    """Return the default of each variable of a template, None for those without one."""
    pieces = (piece for source in (version.subject, version.html, version.text) for piece in scan(source))
    return {str(piece.path): piece.default for piece in pieces if not isinstance(piece, str) and piece.kind in VALUES}


def _addresses(body: dict[str, Any]) -> dict[str, str]:
    """Return the default addresses that a request sets; an empty text removes one. Raises ValidationError."""
    found = {}
    if (sender := body.get("from")) is not None:
        found["sender"] = str(valid_field("from", sender)) if sender else ""
    if (reply_to := body.get("reply_to")) is not None:
        found["reply_to"] = ", ".join(map(str, valid_field("replyTo", reply_to))) if reply_to else ""
    return found


def with_template_defaults(workspace: Workspace, items: Sequence[Any]) -> list[Any]:
    """Return emails with the addresses that they lack and their templates have, in one query for all of them."""
    references = [_reference(item) for item in items]
    templates = find_templates(workspace, [name for name in references if name], NO_LIMITS)
    return [_with_defaults(item, templates.get(reference)) for item, reference in zip(items, references, strict=True)]


def _reference(item: Any) -> str | None:
    """Return the template of an email that lacks an address, None for any other value."""
    template = item.get("template") if isinstance(item, dict) else None
    reference = template.get("id") if isinstance(template, dict) else None
    if not isinstance(reference, str) or not reference or all(item.get(name) for name in ADDRESSES):
        return None
    return from_any_spelling(reference, prefix="tpl_")


def _with_defaults(item: Any, template: Any) -> Any:
    if not isinstance(template, Template):
        return item
    defaults = {name: getattr(template, attribute) for name, attribute in ADDRESSES.items()}
    if defaults["reply_to"]:
        defaults["reply_to"] = split_address_list(defaults["reply_to"])
    return {**item, **{name: value for name, value in defaults.items() if value and not item.get(name)}}


def _changes(native: dict[str, Any]) -> dict[str, Any]:
    changes: dict[str, Any] = ResendTemplateInput(partial=True).run_validation(native)
    return changes


def _native(body: dict[str, Any], fallbacks: dict[str, str]) -> dict[str, Any]:
    linked = {name: with_unsubscribe_links(body[name]) for name in LINKED if name in body}
    filled = {name: _with_fallbacks({**body, **linked}[name], fallbacks) for name in CONTENT if name in body}
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
    """Return a source in which variables without a default have their fallback values: `{{{NAME|"there"}}}`."""
    return _filled(source, fallbacks, keeps_defaults=True)


def _with_new_fallbacks(source: str, fallbacks: dict[str, str]) -> Any:
    """Return a source in which the fallback values replace the defaults of their variables."""
    return _filled(source, fallbacks, keeps_defaults=False)


def _filled(source: Any, fallbacks: dict[str, str], *, keeps_defaults: bool) -> Any:
    if not fallbacks or not isinstance(source, str):
        return source

    def fill(tag: re.Match[str]) -> str:
        if tag[2] not in fallbacks or (tag[3] and keeps_defaults):
            return tag[0]
        return f"{tag[1]}{tag[2]}|{_quoted(fallbacks[tag[2]])}"

    # A template with more tags than this is refused; until then, the source grows no further.
    return TAG.sub(fill, source, count=MAX_TAGS)


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
