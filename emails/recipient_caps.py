"""Windows of caps: the emails that a recipient got lately, counted exactly (docs/decisions/0389).

Each window is a row, locked from the count until the commit. Its id is a digest: it tells nothing about the address.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from core.lib.sql import delete_batches, run
from core.workspaces.recipients.caps import Cap, Exceeding

BATCH_SIZE = 1000
# Locks in the order of the ids, which prevents deadlocks. The time is read after the lock.
LOCK = """
INSERT INTO emails_capwindow (id, uses, expires_at)
SELECT id, '{}', now() FROM unnest(%s::uuid[]) AS given (id) ORDER BY id
    ON CONFLICT (id) DO UPDATE SET uses = emails_capwindow.uses
RETURNING id, uses::text, clock_timestamp()
"""
STORE = """
UPDATE emails_capwindow w SET uses = given.uses, expires_at = given.expires_at
  FROM json_to_recordset(%s) AS given (id uuid, uses jsonb, expires_at timestamptz) WHERE w.id = given.id
"""
DELETE = f"""
WITH ended AS MATERIALIZED (
    SELECT id FROM emails_capwindow WHERE expires_at < now() LIMIT {BATCH_SIZE} FOR UPDATE SKIP LOCKED
)
DELETE FROM emails_capwindow w USING ended WHERE w.id = ended.id
"""  # noqa: S608 - a constant
# The caps of a workspace or key, whose id is given.
OwnedCap = tuple[str, Cap]


@dataclass(frozen=True)
class CountedRecipient:
    """A recipient to count. id: its number; a window counts it once."""

    id: UUID
    address: str
    template_id: str | None
    caps: tuple[OwnedCap, ...]


@dataclass(frozen=True)
class Exceeded:
    """A cap that has no room. retry_at: when it has."""

    exceeding: Exceeding
    retry_at: datetime
    retry_after_seconds: float


@dataclass
class _Window:
    """The times of the emails in a window, by recipient."""

    uses: dict[str, float]
    is_changed: bool = False
    seconds: int = field(default=0)


def count_recipients(groups: Sequence[Sequence[CountedRecipient]]) -> list[list[Exceeded | None]]:
    """Count the recipients of emails, each a group; return the exceeded cap of each recipient.

    An email that exceeds a cap which refuses counts for none of its recipients, and an exceeded one is not counted.
    Must run in a transaction: the windows stay locked until its end.
    """
    windows, now = _lock(groups)
    results = []
    for group in groups:
        exceeded = [_find_exceeded(one, windows, now) for one in group]
        results.append(exceeded)
        if any(one and one.exceeding is Exceeding.REFUSE for one in exceeded):
            continue
        for recipient, problem in zip(group, exceeded, strict=True):
            if problem is None:
                _add(recipient, windows, now)
    changed = {id_: window for id_, window in windows.items() if window.is_changed}
    if changed:
        run(STORE, [json.dumps([_stored(id_, window) for id_, window in changed.items()])])
    return results


def delete_ended_windows() -> Iterator[None]:
    """Delete windows whose time is over, in batches; yield after each."""
    return delete_batches(DELETE, size=BATCH_SIZE)


def _window_ids(recipient: CountedRecipient) -> Iterator[tuple[UUID, Cap]]:
    for owner_id, cap in recipient.caps:
        yield cap.window_id(owner_id, recipient.address, recipient.template_id), cap


def _lock(groups: Sequence[Sequence[CountedRecipient]]) -> tuple[dict[UUID, _Window], float]:
    seconds = {id_: cap.seconds for group in groups for one in group for id_, cap in _window_ids(one)}
    rows: list[tuple[UUID, str, datetime]] = run(LOCK, [sorted(seconds)]) if seconds else []
    now = max((read_at for _, _, read_at in rows), default=datetime.now(UTC)).timestamp()
    windows = {}
    for id_, text, _ in rows:
        uses = {name: at for name, at in json.loads(text).items() if at > now - seconds[id_]}
        windows[id_] = _Window(uses, seconds=seconds[id_])
    return windows, now


def _find_exceeded(recipient: CountedRecipient, windows: Mapping[UUID, _Window], now: float) -> Exceeded | None:
    """Return the exceeded cap: one that refuses before one that drops, and the one with the longest wait."""
    found = []
    for id_, cap in _window_ids(recipient):
        times = sorted(windows[id_].uses.values())
        if str(recipient.id) not in windows[id_].uses and len(times) >= cap.count:
            free_at = times[len(times) - cap.count] + cap.seconds
            found.append(Exceeded(cap.exceeding, datetime.fromtimestamp(free_at, UTC), free_at - now))
    return max(found, key=lambda one: (one.exceeding is Exceeding.REFUSE, one.retry_at), default=None)


def _add(recipient: CountedRecipient, windows: Mapping[UUID, _Window], now: float) -> None:
    for id_, _ in _window_ids(recipient):
        window = windows[id_]
        if str(recipient.id) not in window.uses:
            window.uses[str(recipient.id)] = now
            window.is_changed = True


def _stored(id_: UUID, window: _Window) -> dict[str, Any]:
    expires_at = datetime.fromtimestamp(max(window.uses.values()) + window.seconds, UTC)
    return {"id": str(id_), "uses": window.uses, "expires_at": expires_at.isoformat()}
