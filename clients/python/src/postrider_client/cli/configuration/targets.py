"""Finds the workspaces of a file in the service, and refuses changes that the key cannot make."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Optional

from postrider_client.answers import Me
from postrider_client.cli.configuration.faults import Fault
from postrider_client.cli.configuration.kinds import PAGE
from postrider_client.cli.configuration.session import Session
from postrider_client.cli.configuration.source import WORKSPACES, ConfigurationFile, WorkspaceSource
from postrider_client.client import Postrider
from postrider_client.workspace_answers import ManagedWorkspace

ADMIN = "workspace_admin"


@dataclass(frozen=True)
class Target:
    """The workspace of the service that a part of the file describes.

    present: its fields, None if it does not exist.
    key_id: the API key in use, which is never revoked.
    """

    label: str
    workspace_id: Optional[str] = None
    present: Optional[Mapping[str, Any]] = None
    key_id: str = ""


def find_targets(source: ConfigurationFile, session: Session) -> tuple[list[Target], list[Fault]]:
    """Return the target of each workspace of the file, and the errors."""
    if source.is_list != session.is_management:
        return [], [_wrong_key(source)]
    if not source.workspaces:
        return [], [source.fault((WORKSPACES,), "The list needs at least one workspace.")]
    if session.is_management:
        workspaces = list(session.manager.workspaces.list(limit=PAGE))
        found = [_managed_target(source, one, workspaces) for one in source.workspaces]
        return [target for target, _ in found], [fault for _, faults in found for fault in faults]
    (workspace,) = source.workspaces
    me = session.manager.me()
    label = workspace.label if "name" in workspace.values else me.workspace.name
    target = Target(label, me.workspace.id, _own_fields(session.manager, me), me.key.id)
    return [target], list(_own_faults(source, workspace, me))


def _own_fields(client: Postrider, me: Me) -> Mapping[str, Any]:
    # me() may be a second old.
    if me.key.scope == ADMIN:
        return client.workspaces.get(me.workspace.id).raw
    return {"id": me.workspace.id, "name": me.workspace.name, "plan": me.workspace.plan}


def _wrong_key(source: ConfigurationFile) -> Fault:
    if source.is_list:
        return source.fault((WORKSPACES,), "A list of workspaces requires a management key (pra_…).")
    return Fault(1, "", "A management key requires a list, `workspaces`. An API key describes one workspace.")


def _managed_target(
    source: ConfigurationFile, workspace: WorkspaceSource, all_workspaces: list[ManagedWorkspace]
) -> tuple[Target, list[Fault]]:
    """Find a workspace by its id, or by its name."""
    name = "id" if "id" in workspace.values else "name"
    matching = [
        one for one in all_workspaces if getattr(one, name) == workspace.values.get(name) and one.deletes_at is None
    ]
    faults = list[Fault]()
    if len(matching) > 1:
        message = f"{len(matching)} workspaces have this name. Add the id of one."
        faults.append(source.fault((*workspace.path, name), message))
    if not matching and name == "id":
        faults.append(
            source.fault((*workspace.path, name), "The key manages no workspace with this id, or it was deleted.")
        )
    if not matching:
        return Target(workspace.label), faults
    present = matching[0]
    if workspace.values.get("group", present.group) != present.group:
        message = f"The workspace is in the group {present.group!r}, which cannot be changed."
        faults.append(source.fault((*workspace.path, "group"), message))
    return Target(workspace.label, present.id, present.raw), faults


def _own_faults(source: ConfigurationFile, workspace: WorkspaceSource, me: Me) -> Iterator[Fault]:
    """Yield the errors of a file that describes the workspace of an API key."""
    values = workspace.values
    if values.get("id", me.workspace.id) != me.workspace.id:
        yield source.fault(("id",), f"The API key is for the workspace {me.workspace.id}.")
    if values.get("plan", me.workspace.plan) != me.workspace.plan:
        yield source.fault(
            ("plan",), f"The plan is {me.workspace.plan}. Changing it requires a management key (pra_…)."
        )
    for name in ("group", "ownerEmail"):
        if name in values:
            yield source.fault((name,), "This belongs to a list of workspaces, for a management key (pra_…).")
    is_renamed = values.get("name", me.workspace.name) != me.workspace.name
    sections = tuple(name for name in ("recipientRules", "apiKeys") if name in values)
    for name in ("name",) * is_renamed + sections:
        if me.key.scope != ADMIN:
            yield source.fault((name,), f"This requires an API key with scope {ADMIN}; this one has {me.key.scope}.")
