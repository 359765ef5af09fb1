"""Events of a workspace outside of an email's timeline: suppressions, domains, and suppressed recipients.

The sequencer of `events` makes them visible in `/v1/events` and publishes them to webhooks.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from workspaces.models import Workspace, WorkspaceEvent

EventKind = WorkspaceEvent.Kind


def record_events(workspace: Workspace, kind: EventKind, payloads: Iterable[Mapping[str, Any]]) -> None:
    """Add an event of one kind for each payload. Call it in the transaction of the change."""
    WorkspaceEvent.objects.bulk_create(
        [WorkspaceEvent(workspace_id=workspace.id, kind=kind, payload=dict(payload)) for payload in payloads]
    )
