"""Has the service check the values of a file, without changing anything."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from postrider_client.cli.configuration.faults import Fault, ValuePath
from postrider_client.cli.configuration.source import ConfigurationFile, WorkspaceSource
from postrider_client.client import Postrider
from postrider_client.errors import ValidationError
from postrider_client.workspace_answers import CheckedConfiguration

# Limits for the content of templates in one request: below those of the service.
MAX_CHARACTERS = 1024 * 1024
MAX_TEMPLATES = 5
PART = re.compile(r"[^.\[\]]+")


def check_values(source: ConfigurationFile, client: Postrider) -> tuple[ConfigurationFile, list[Fault]]:
    """Return the file with names of domains and senders as the service stores them, and the errors of its values."""
    faults: list[Fault] = []
    workspaces = tuple(_check_workspace(source, one, client, faults) for one in source.workspaces)
    return replace(source, workspaces=workspaces), faults


def _check_workspace(
    source: ConfigurationFile, workspace: WorkspaceSource, client: Postrider, faults: list[Fault]
) -> WorkspaceSource:
    values = dict(workspace.values)
    for first, part in _parts(values):
        try:
            checked = client.workspaces.check_configuration(part)
        except ValidationError as error:
            faults += [source.fault(_path_of(workspace, one.field, first=first), one.detail) for one in error.errors]
            continue
        for section, field, names in _stored_names(checked):
            if section in part:
                values[section] = [{**one, field: name} for one, name in zip(part[section], names)]
    return replace(workspace, values=values)


def _stored_names(checked: CheckedConfiguration) -> Iterator[tuple[str, str, list[str]]]:
    """Yield the section, the field and the values of the names that the service stores in another form."""
    yield "domains", "name", checked.domain_names
    yield "routes", "domain", checked.route_domains or []
    yield "blocks", "sender", checked.blocked_senders or []


def _parts(values: Mapping[str, Any]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the values in parts that fit into a request, each with the index of its first template."""
    templates = values.get("templates")
    if not isinstance(templates, list):
        yield 0, values
        return
    yield 0, {name: value for name, value in values.items() if name != "templates"}
    first, size = 0, 0
    for index, template in enumerate(templates):
        length = len(json.dumps(template))
        if index > first and (size + length > MAX_CHARACTERS or index - first == MAX_TEMPLATES):
            yield first, {"templates": templates[first:index]}
            first, size = index, 0
        size += length
    yield first, {"templates": templates[first:]}


def _path_of(workspace: WorkspaceSource, name: str, *, first: int) -> ValuePath:
    """Return the path in the file of a field of the service, such as `templates[0].htmlContent`."""
    parts: list[Any] = [int(part) if part.isdigit() else part for part in PART.findall(name)]
    if parts[0] == "templates" and len(parts) > 1:
        parts[1] += first
    return (*workspace.path, *parts)
