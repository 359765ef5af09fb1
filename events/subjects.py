"""Subjects of events that are no emails: the app of a subject describes it when an event is rendered.

The payload in the log names the subject; its description is read anew each time, so that nothing of a deleted subject
stays in the log.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from core.lib.registry import Registry
from events.models import Event


@dataclass(frozen=True)
class SubjectDescription:
    """Members of an event's data beside its payload. webhook_ids: the only endpoints that get it; empty for all."""

    data: dict[str, Any] = field(default_factory=dict)
    webhook_ids: tuple[str, ...] = ()


# Describes the subjects of events of one kind, by the numbers of the events. is_whole: as webhooks show them.
Describe = Callable[[Sequence[Event], bool], dict[int, SubjectDescription]]
# By the kind of the events.
DESCRIBERS = Registry[Describe]()
UNKNOWN = SubjectDescription()


def describe_subjects(events: Sequence[Event], *, is_whole: bool) -> dict[int, SubjectDescription]:
    """Return the descriptions of the subjects that still exist, by the numbers of their events."""
    found: dict[int, SubjectDescription] = {}
    for kind, describe in DESCRIBERS.items():
        if about := [event for event in events if event.kind == kind]:
            found |= describe(about, is_whole)
    return found
