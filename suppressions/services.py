"""Acts on the suppression list: block addresses, unblock one, ask which are blocked."""

from collections.abc import Collection, Hashable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, TypeVar

from django.db import connection, transaction

from api.errors import NotFound
from lib.ids import from_uuid, new_id, to_uuid
from lib.sql import run_planned
from suppressions.models import Suppression, key_of
from workspaces.audit import Act, note
from workspaces.models import Workspace

# Known rows are read, not written again: an importer may post the same thousand every night. Two
# that add one address at once meet in ON CONFLICT, where the loser gets the winner's row; all add
# in the same order, or they would wait for one another.
SUPPRESS = """
WITH given AS (
    SELECT * FROM unnest(%(ids)s::uuid[], %(emails)s::text[], %(keys)s::text[]) AS g (id, email, address_key)
), known AS (
    SELECT s.* FROM suppressions_suppression s JOIN given USING (address_key) WHERE s.workspace_id = %(workspace)s
), made AS (
    INSERT INTO suppressions_suppression (id, workspace_id, email, address_key, reason)
    SELECT id, %(workspace)s, email, address_key, %(reason)s
      FROM given
     WHERE NOT EXISTS (SELECT FROM known WHERE known.address_key = given.address_key)
     ORDER BY address_key
        ON CONFLICT (workspace_id, address_key) DO UPDATE SET address_key = EXCLUDED.address_key
    RETURNING *
)
SELECT * FROM known UNION ALL SELECT * FROM made
"""

BLOCKED = """
SELECT given.place, s.id, s.email, s.reason
  FROM unnest(%(blocked_workspaces)s::uuid[], %(blocked_keys)s::text[])
       WITH ORDINALITY AS given (workspace_id, address_key, place)
  JOIN suppressions_suppression s USING (workspace_id, address_key)
"""

Pair = tuple[str, str]
G = TypeVar("G", bound=Hashable)


@dataclass(frozen=True)
class Block:
    """Why an address is blocked; email as it stands on the list."""

    id: str
    email: str
    reason: str


def suppress_address(workspace: Workspace, *, address: str, reason: str) -> tuple[Suppression, bool]:
    """Block an address; return its row, and whether it is new.

    address: an addr-spec as `lib.email_addresses` gives it. One that is blocked keeps its row and reason.
    """
    (found,) = suppress_addresses(workspace, addresses=[address], reason=reason)
    return found


def suppress_addresses(
    workspace: Workspace, *, addresses: Sequence[str], reason: str
) -> list[tuple[Suppression, bool]]:
    """Block any number of addresses in one statement; return each one's row, and whether it is new, in their order.

    An address that is named twice gets the same row twice.
    """
    by_key = {key_of(address): address for address in reversed(addresses)}
    ids = {new_id("sup_"): key for key in by_key}
    values: dict[str, Any] = {
        "workspace": to_uuid(workspace.id, prefix="ws_"),
        "reason": reason,
        "ids": [to_uuid(suppression_id, prefix="sup_") for suppression_id in ids],
        "emails": list(by_key.values()),
        "keys": list(by_key),
    }
    # Bounces come by the thousand and are events; only what people and keys add is noted.
    with transaction.atomic() if reason == Suppression.Reason.MANUAL else nullcontext():
        rows = {row.address_key: row for row in Suppression.objects.raw(SUPPRESS, values)}
        added = [row.email for row in rows.values() if row.id in ids]
        if added and reason == Suppression.Reason.MANUAL:
            note(workspace, Act.SUPPRESSION_ADDED, about=added[0] if len(added) == 1 else f"{len(added)} addresses")
    return [(row, row.id in ids) for row in (rows[key_of(address)] for address in addresses)]


def suppress_everywhere(found: Iterable[tuple[str, str, str]]) -> None:
    """Block addresses of any number of workspaces, each given as workspace id, reason and address."""
    lists: dict[tuple[str, str], list[str]] = {}
    for workspace_id, reason, address in found:
        lists.setdefault((workspace_id, reason), []).append(address)
    for (workspace_id, reason), addresses in sorted(lists.items()):
        suppress_addresses(Workspace(id=workspace_id), addresses=addresses, reason=reason)


@transaction.atomic
def unblock_address(suppression: Suppression) -> None:
    """Remove an address from the list. Raises NotFound when somebody else was faster."""
    removed, _ = Suppression.objects.filter(id=suppression.id).delete()
    if not removed:
        raise NotFound("There is nothing here, or it is not yours.")
    note(suppression.workspace, Act.SUPPRESSION_REMOVED, about=suppression.email)


def blocked(workspace_id: str, addresses: Collection[str]) -> dict[str, Block]:
    """Return those of the addresses that a workspace blocks, by `key_of` the address, in one query."""
    with connection.cursor() as cursor:
        cursor.execute(BLOCKED, blocked_values(workspace_id, addresses))
        return read_blocked(addresses, cursor.fetchall())


def blocked_values(workspace_id: str, addresses: Collection[str]) -> dict[str, Any]:
    """Return the values of BLOCKED, for statements that ask it along with other things."""
    return _values([(workspace_id, key_of(address)) for address in addresses])


def read_blocked(addresses: Collection[str], rows: Sequence[Sequence[Any]]) -> dict[str, Block]:
    """Return what `blocked` does, of the rows that BLOCKED was answered with."""
    return _read([key_of(address) for address in addresses], rows)


def blocked_pairs(pairs: Collection[Pair]) -> dict[Pair, Block]:
    """Return those of the pairs (workspace id, address) that are blocked, each as it was given, in one query."""
    given = list(pairs)
    return _read(given, run_planned(BLOCKED, _values(given)))


def _values(pairs: Sequence[Pair]) -> dict[str, Any]:
    workspaces = [to_uuid(workspace_id, prefix="ws_") for workspace_id, _ in pairs]
    return {"blocked_workspaces": workspaces, "blocked_keys": [key_of(address) for _, address in pairs]}


def _read(given: Sequence[G], rows: Sequence[Sequence[Any]]) -> dict[G, Block]:
    return {
        given[place - 1]: Block(from_uuid(suppression_id, prefix="sup_"), email, reason)
        for place, suppression_id, email, reason in rows
    }
