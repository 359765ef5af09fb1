"""Push of templates from one server to another, which are workspaces.

See https://postmarkapp.com/developer/api/templates-api#push-templates and docs/decisions/0335.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from django.db import transaction
from django.db.models import Sum, TextField
from django.db.models.functions import Cast, Length

from core.lib.ids import id_number
from core.workspaces.api.authentication import ReadAddress, find_key
from core.workspaces.api.scopes import refuse_other_scopes
from core.workspaces.models import ApiKey, Workspace
from interfaces.compat.errors import invalid_field
from interfaces.compat.postmark.errors import OTHER_TYPE, UNKNOWN_SERVER
from templates_app.content import TemplateContent, version_content
from templates_app.models import Template
from templates_app.services import create_template, update_template
from templates_app.views import MAX_TEMPLATE_BODY_BYTES

MAX_KEYS = 2
# Partials and layouts come before the templates that need them.
ORDER = {Template.TemplateKind.PARTIAL: 0, Template.TemplateKind.LAYOUT: 1, Template.TemplateKind.TEMPLATE: 2}
SIZE = Length("version__html") + Length("version__text") + Length(Cast("version__locales", TextField()))


def read_keys(tokens: str, *, client: ReadAddress) -> list[ApiKey]:
    """Return the keys of an account token.

    Raises a subclass of Unauthenticated, NetworkNotAllowed, InsufficientScope.
    """
    keys = [find_key(token.strip(), client=client) for token in tokens.split(",")[:MAX_KEYS]]
    for key in keys:
        if key.scope != ApiKey.Scope.WORKSPACE_ADMIN:
            refuse_other_scopes(key, needed=ApiKey.Scope.FULL_ACCESS)
    return keys


def push_response(body: Mapping[str, Any], keys: Sequence[ApiKey]) -> dict[str, Any]:
    """Push the templates with an alias from the source to the destination; return the actions, performed or not.

    Raises InvalidFields for an unknown server.
    """
    source, destination = _servers(body, keys)
    with transaction.atomic():
        actions = _push(source, destination)
        transaction.set_rollback(body.get("PerformChanges") is not True)
    return {"TotalCount": len(actions), "Templates": actions}


def _servers(body: Mapping[str, Any], keys: Sequence[ApiKey]) -> tuple[Workspace, Workspace]:
    workspaces = {str(id_number(key.workspace_id, prefix="ws_")): key.workspace for key in keys}
    source, destination = (workspaces.get(str(body.get(name))) for name in ("SourceServerID", "DestinationServerID"))
    if source is None and destination is None:
        raise invalid_field("SourceServerID", "The source and destination servers were not found.", code=UNKNOWN_SERVER)
    if source is None:
        raise invalid_field("SourceServerID", "The source server was not found.", code=UNKNOWN_SERVER)
    if destination is None:
        raise invalid_field("DestinationServerID", "The destination server was not found.", code=UNKNOWN_SERVER)
    return source, destination


def _push(source: Workspace, destination: Workspace) -> list[dict[str, Any]]:
    """Create and change templates; return the actions. Raises InvalidFields, and the errors of create_template."""
    pushed, existing = _read(source), _read(destination)
    actions = []
    for template in _in_order(pushed.values()):
        content = _with_layout_alias(version_content(template.version), pushed)
        found = existing.get(template.alias or "")
        if found is None:
            found, action = _create(destination, template, content), "Create"
        elif found.kind != template.kind:
            message = f"The template {template.alias} has another type there."
            raise invalid_field("DestinationServerID", message, code=OTHER_TYPE)
        elif _with_layout_alias(version_content(found.version), existing) == content and found.name == template.name:
            continue
        else:
            found, action = update_template(found, changes={**vars(content), "name": template.name}), "Edit"
        actions.append(_action(action, found))
    return actions


def _read(workspace: Workspace) -> dict[str, Template]:
    """Return the templates of a server that have an alias, by alias. Raises InvalidFields if they are too large."""
    rows = workspace.templates.exclude(alias=None)
    if (rows.aggregate(size=Sum(SIZE))["size"] or 0) > MAX_TEMPLATE_BODY_BYTES:
        raise invalid_field("SourceServerID", "The templates are too large to be pushed together.")
    return {template.alias or "": template for template in rows.select_related("version")}


def _in_order(templates: Iterable[Template]) -> list[Template]:
    """Return templates in the order in which they can be created: what others need comes first."""
    waiting, ordered = sorted(templates, key=lambda template: ORDER[Template.TemplateKind(template.kind)]), []
    partials = {template.alias for template in waiting if template.kind == Template.TemplateKind.PARTIAL}
    while waiting:
        ready = [one for one in waiting if not {*one.version.partials} & partials] or waiting
        ordered += ready
        partials -= {template.alias for template in ready}
        waiting = [template for template in waiting if template not in ready]
    return sorted(ordered, key=lambda template: ORDER[Template.TemplateKind(template.kind)])


def _with_layout_alias(content: TemplateContent, templates: Mapping[str, Template]) -> TemplateContent:
    """Return content that names its layout by the alias, which is the same on both servers."""
    alias = next((alias for alias, one in templates.items() if one.id == content.layout_id), None)
    return replace(content, layout_id=alias)


def _create(workspace: Workspace, template: Template, content: TemplateContent) -> Template:
    return create_template(
        workspace,
        name=template.name,
        kind=template.kind,
        content=content,
        alias=template.alias,
        strict_variables=template.strict_variables,
        sample_data=template.sample_data,
    )


def _action(action: str, template: Template) -> dict[str, Any]:
    return {
        "Action": action,
        "TemplateId": id_number(template.id, prefix="tpl_") if action == "Edit" else None,
        "Alias": template.alias,
        "Name": template.name,
        "TemplateType": "Layout" if template.kind == Template.TemplateKind.LAYOUT else "Standard",
    }
