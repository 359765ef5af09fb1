"""Compares a file with the service. The result is the list of changes that make the service match the file."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Optional

import click

from postrider_client.cli.configuration.kinds import KINDS, Kind, Place, Values, normal_rules
from postrider_client.cli.configuration.source import WorkspaceSource
from postrider_client.cli.configuration.targets import Target

CREATE, UPDATE, DELETE, ARCHIVE, KEEP = "create", "update", "delete", "archive", "keep"
# The fields of a workspace that can be changed.
WORKSPACE_FIELDS = ("name", "plan", "recipientRules")


@dataclass(frozen=True)
class FieldChange:
    name: str
    old: Any
    new: Any


@dataclass(frozen=True)
class Step:
    """One change of the service.

    kind: None for a workspace.
    object_id: the id of an existing object.
    values: the fields to send.
    is_duplicate: another object of the service is the same in the file.
    """

    action: str
    kind: Optional[Kind]
    target: Target
    label: str
    values: Values
    object_id: str = ""
    changes: tuple[FieldChange, ...] = ()
    is_duplicate: bool = False

    @property
    def kind_name(self) -> str:
        return self.kind.name if self.kind else "workspace"

    @property
    def raw(self) -> dict[str, Any]:
        """Return the step for JSON output and for comparison with another plan."""
        return {
            "action": self.action,
            "kind": self.kind_name,
            "name": self.label,
            "workspace": self.target.label,
            "fields": {change.name: {"from": change.old, "to": change.new} for change in self.changes},
            **({"duplicate": True} if self.is_duplicate else {}),
        }


@dataclass(frozen=True)
class Plan:
    """The combined plans of all workspaces.

    steps: the changes, in order.
    unmanaged: the objects that only the service has, which stay without `--prune`.
    """

    steps: tuple[Step, ...]
    unmanaged: tuple[Step, ...]


@dataclass(frozen=True)
class WorkspacePlan:
    steps: tuple[Step, ...]
    deletions: tuple[Step, ...]


def combine_plans(plans: Iterable[WorkspacePlan], *, prune: bool) -> Plan:
    """Return one plan: deletions come last, in the reverse order of creation."""
    plans = list(plans)
    steps = [step for plan in plans for step in plan.steps]
    surplus = [step for plan in plans for step in plan.deletions]
    surplus.sort(key=lambda step: KINDS.index(step.kind) if step.kind else -1, reverse=True)
    return (
        Plan((*steps, *surplus), ())
        if prune
        else Plan(tuple(steps), tuple(replace(step, action=KEEP) for step in surplus))
    )


def plan_workspace(source: WorkspaceSource, target: Target, place: Optional[Place]) -> WorkspacePlan:
    """Compare one workspace. place: None for a workspace that does not exist."""
    steps, deletions = list(_workspace_steps(source, target)), list[Step]()
    for kind in KINDS:
        if kind.section in source.values:
            changed, surplus = _compare_section(kind, source, target, place)
            steps += changed
            deletions += surplus
    return WorkspacePlan(tuple(steps), tuple(deletions))


def _workspace_steps(source: WorkspaceSource, target: Target) -> Iterator[Step]:
    if target.present is None:
        values = {
            name: source.values[name] for name in (*WORKSPACE_FIELDS, "group", "ownerEmail") if name in source.values
        }
        yield Step(CREATE, None, target, target.label, values, changes=_created_fields(None, values))
        return
    changes = _changes(
        target.present, {name: source.values[name] for name in WORKSPACE_FIELDS if name in source.values}
    )
    if changes:
        values = {change.name: change.new for change in changes}
        yield Step(UPDATE, None, target, target.label, values, target.workspace_id or "", changes)


def _compare_section(
    kind: Kind, source: WorkspaceSource, target: Target, place: Optional[Place]
) -> tuple[list[Step], list[Step]]:
    """Return the steps of the objects in the file, and the deletions of those that only the service has."""
    items = list(kind.list(place)) if place else []
    present: dict[Any, Any] = {}
    # The oldest of several objects with the same identity is the one in the file.
    for item in sorted(items, key=lambda one: one.created_at):
        present.setdefault(kind.identity_of(item.raw), item)
    steps, known = list[Step](), set[str]()
    described = {kind.identity_of(entry) for entry in source.entries(kind.section)}
    for entry in sorted(source.entries(kind.section), key=kind.order):
        item = present.get(kind.identity_of(entry))
        known.add(item.id if item else "")
        steps += _entry_steps(kind, entry, target, _read(kind, place, item))
    surplus = [
        Step(
            ARCHIVE if kind.archives else DELETE,
            kind,
            target,
            kind.label(item.raw),
            {},
            item.id,
            is_duplicate=kind.identity_of(item.raw) in described,
        )
        for item in sorted(items, key=lambda one: kind.order(one.raw), reverse=True)
        if item.id not in known and item.id != target.key_id and kind.is_surplus(item)
    ]
    return steps, surplus


def _read(kind: Kind, place: Optional[Place], item: Any) -> Optional[Values]:
    return kind.read(place, item) if place and item else None


def _entry_steps(kind: Kind, entry: Values, target: Target, present: Optional[Values]) -> Iterator[Step]:
    label = kind.label(entry)
    wanted = {name: value for name, value in entry.items() if name not in kind.identity}
    if present is None:
        yield Step(CREATE, kind, target, label, entry, changes=_created_fields(kind, wanted))
        return
    wanted = {**kind.defaults, **wanted}
    changes = _changes(present, {name: wanted[name] for name in wanted if name not in kind.fixed}, kind)
    for change in changes:
        if change.name in kind.unchangeable:
            text = f"The {change.name} of the {kind.name} {label} cannot be changed from {change.old} to {change.new}."
            raise click.ClickException(f"{text} Nothing was changed.")
    if changes:
        values = {change.name: wanted[change.name] for change in changes}
        yield Step(UPDATE, kind, target, label, values, present["id"], changes)


def _created_fields(kind: Optional[Kind], values: Values) -> tuple[FieldChange, ...]:
    return tuple(
        FieldChange(name, None, _normal(kind, name, value)) for name, value in values.items() if value is not None
    )


def _changes(present: Mapping[str, Any], wanted: Values, kind: Optional[Kind] = None) -> tuple[FieldChange, ...]:
    pairs = (
        (name, _normal(kind, name, present.get(name)), _normal(kind, name, value)) for name, value in wanted.items()
    )
    return tuple(FieldChange(name, old, new) for name, old, new in pairs if old != new)


def _normal(kind: Optional[Kind], name: str, value: Any) -> Any:
    if kind is None and name == "recipientRules":
        return normal_rules(value)
    return kind.normalized(name, value) if kind else value
