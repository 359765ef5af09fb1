"""Suppression services: suppress addresses, delete a suppression, look up suppressed addresses.

See docs/decisions/0013.
"""

import functools
from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from django.db import transaction

from api.errors import NotFound
from events.kinds import EventKind
from events.recording import NewEvent, record_events
from lib.coded_texts import CodedText
from lib.email_addresses import normalize_address
from lib.ids import from_uuid, new_id, to_uuid
from lib.sql import Fragment, run_replanned
from suppressions.models import Suppression
from suppressions.notices import publish_notice
from workspaces.audit import AuditAction, record_action
from workspaces.models import Workspace

# Existing rows are read, not rewritten: an importer may post the same thousand addresses every night. Concurrent
# inserts of one address meet in ON CONFLICT, where the later one gets the existing row. All insert in the same order,
# which prevents deadlocks.
SUPPRESS = """
WITH given AS (
    SELECT * FROM unnest(%(ids)s::uuid[], %(emails)s::text[], %(keys)s::text[]) AS g (id, email, address_key)
), known AS (
    SELECT s.* FROM suppressions_suppression s JOIN given USING (address_key) WHERE s.workspace_id = %(workspace)s
), added AS (
    INSERT INTO suppressions_suppression (id, workspace_id, email, address_key, reason)
    SELECT id, %(workspace)s, email, address_key, %(reason)s
      FROM given
     WHERE NOT EXISTS (SELECT FROM known WHERE known.address_key = given.address_key)
     ORDER BY address_key
        ON CONFLICT (workspace_id, address_key) DO UPDATE SET address_key = EXCLUDED.address_key
    RETURNING *
)
SELECT * FROM known UNION ALL SELECT * FROM added
"""

FIND_SUPPRESSED = """
SELECT given.number, s.id, s.email, s.reason
  FROM unnest(%(blocked_workspaces)s::uuid[], %(blocked_keys)s::text[])
       WITH ORDINALITY AS given (workspace_id, address_key, number)
  JOIN suppressions_suppression s USING (workspace_id, address_key)
"""

Pair = tuple[str, str]
G = TypeVar("G", bound=Hashable)


@dataclass(frozen=True)
class SuppressionMatch:
    """The suppression of an address; email as spelled on the list."""

    id: str
    email: str
    reason: str


def suppress_address(workspace: Workspace, *, address: str, reason: str) -> tuple[Suppression, bool]:
    """Suppress an address; return its row and whether it is new.

    address: an addr-spec from `lib.email_addresses`. An address already suppressed keeps its row and reason.
    """
    (result,) = suppress_addresses(workspace, addresses=[address], reason=reason)
    return result


def suppress_addresses(
    workspace: Workspace, *, addresses: Sequence[str], reason: str
) -> list[tuple[Suppression, bool]]:
    """Suppress any number of addresses in one statement; return the row of each, in order, and whether it is new.

    An address given twice gets the same row twice.
    """
    by_key = {normalize_address(address): address for address in reversed(addresses)}
    ids = {new_id("sup_"): key for key in by_key}
    values: dict[str, Any] = {
        "workspace": to_uuid(workspace.id, prefix="ws_"),
        "reason": reason,
        "ids": [to_uuid(suppression_id, prefix="sup_") for suppression_id in ids],
        "emails": list(by_key.values()),
        "keys": list(by_key),
    }
    # Without a savepoint: callers with an open transaction do not continue after an error.
    with transaction.atomic(savepoint=False):
        rows = {row.address_key: row for row in Suppression.objects.raw(SUPPRESS, values)}
        _record_added(workspace, [row for row in rows.values() if row.id in ids], reason=reason)
    return [(row, row.id in ids) for row in (rows[normalize_address(address)] for address in addresses)]


def _record_added(workspace: Workspace, added: Sequence[Suppression], *, reason: str) -> None:
    if not added:
        return
    record_events([_new_event(EventKind.SUPPRESSION_ADDED, row) for row in added])
    addresses = [row.email for row in added]
    # Only suppressions added by users and API keys are audited: bounces are numerous and have events.
    if reason == Suppression.Reason.MANUAL:
        about = addresses[0] if len(addresses) == 1 else CodedText("workspaces.address_count", count=len(addresses))
        record_action(workspace, AuditAction.SUPPRESSION_ADDED, about=about)
    transaction.on_commit(functools.partial(publish_notice, workspace.id, addresses))


def _new_event(kind: EventKind, suppression: Suppression) -> NewEvent:
    details = {"suppressionId": suppression.id, "email": suppression.email, "reason": suppression.reason}
    return NewEvent(kind, workspace_id=suppression.workspace_id, details=details)


def suppress_in_workspaces(suppressions: Iterable[tuple[str, str, str]]) -> None:
    """Suppress addresses in any number of workspaces, each given as (workspace id, reason, address)."""
    lists: dict[tuple[str, str], list[str]] = {}
    for workspace_id, reason, address in suppressions:
        lists.setdefault((workspace_id, reason), []).append(address)
    for (workspace_id, reason), addresses in sorted(lists.items()):
        suppress_addresses(Workspace(id=workspace_id), addresses=addresses, reason=reason)


@transaction.atomic
def delete_suppression(suppression: Suppression) -> None:
    """Delete a suppression. Raises NotFound if it was deleted in the meantime."""
    removed, _ = Suppression.objects.filter(id=suppression.id).delete()
    if not removed:
        raise NotFound
    record_events([_new_event(EventKind.SUPPRESSION_REMOVED, suppression)])
    record_action(suppression.workspace, AuditAction.SUPPRESSION_REMOVED, about=suppression.email)


@transaction.atomic
def delete_suppressions(workspace: Workspace, *, addresses: Sequence[str]) -> None:
    """Delete the suppressions of addresses; addresses that are not suppressed are ignored."""
    rows = workspace.suppressions.filter(address_key__in=[normalize_address(address) for address in addresses])
    removed = list(rows.select_for_update())
    rows.filter(id__in=[suppression.id for suppression in removed]).delete()
    record_events([_new_event(EventKind.SUPPRESSION_REMOVED, suppression) for suppression in removed])
    for suppression in removed:
        record_action(workspace, AuditAction.SUPPRESSION_REMOVED, about=suppression.email)


def find_suppressed(workspace_id: str, addresses: Collection[str]) -> dict[str, SuppressionMatch]:
    """Return the suppressions of the given addresses in a workspace, by normalized address, in one query."""
    find = suppressed_fragment(workspace_id, addresses)
    return read_suppressed(addresses, run_replanned(find.sql, find.params))


def suppressed_fragment(workspace_id: str, addresses: Collection[str]) -> Fragment:
    """Return the SQL of `find_suppressed`, for statements that embed it; read_suppressed reads its rows."""
    return Fragment(FIND_SUPPRESSED, _values([(workspace_id, address) for address in addresses]))


def read_suppressed(addresses: Collection[str], rows: Sequence[Sequence[Any]]) -> dict[str, SuppressionMatch]:
    """Return the result of `find_suppressed` from the rows of its SQL."""
    return _read([normalize_address(address) for address in addresses], rows)


def find_suppressed_pairs(pairs: Collection[Pair]) -> dict[Pair, SuppressionMatch]:
    """Return the suppressions of the given pairs (workspace id, address), by pair, in one query."""
    listed = list(pairs)
    return _read(listed, run_replanned(FIND_SUPPRESSED, _values(listed)))


def _values(pairs: Sequence[Pair]) -> dict[str, Any]:
    workspaces = [to_uuid(workspace_id, prefix="ws_") for workspace_id, _ in pairs]
    return {"blocked_workspaces": workspaces, "blocked_keys": [normalize_address(address) for _, address in pairs]}


def _read(keys: Sequence[G], rows: Sequence[Sequence[Any]]) -> dict[G, SuppressionMatch]:
    return {
        keys[number - 1]: SuppressionMatch(from_uuid(suppression_id, prefix="sup_"), email, reason)
        for number, suppression_id, email, reason in rows
    }
