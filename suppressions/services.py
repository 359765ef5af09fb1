"""Suppression services: suppress addresses, delete a suppression, look up suppressed addresses.

See docs/decisions/0013.
"""

import functools
from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from django.conf import settings
from django.db import transaction

from core.api.errors import NotFound
from core.lib.coded_texts import CodedText
from core.lib.email_addresses import normalize_address
from core.lib.ids import from_uuid, new_id, to_uuid
from core.lib.sql import Fragment, run_replanned
from core.workspaces.audit import AuditAction, record_action
from core.workspaces.models import Workspace
from events.kinds import EventKind
from events.recording import NewEvent, record_events
from streams.models import MAIN
from streams.services import existing_stream, suppressed_stream
from suppressions.erased import all_keys, hashed_keys
from suppressions.models import Suppression, suppression_key
from suppressions.notices import publish_notice

# Existing rows are read, not rewritten: an importer may post the same thousand addresses every night. Concurrent
# inserts of one address meet in ON CONFLICT, where the later one gets the existing row. All insert in the same order,
# which prevents deadlocks.
SUPPRESS = """
WITH given AS (
    SELECT * FROM unnest(%(ids)s::uuid[], %(emails)s::text[], %(keys)s::text[]) AS g (id, email, address_key)
), known AS (
    SELECT s.* FROM suppressions_suppression s JOIN given USING (address_key) WHERE s.workspace_id = %(workspace)s
), added AS (
    INSERT INTO suppressions_suppression (id, workspace_id, email, address_key, reason, stream)
    SELECT id, %(workspace)s, email, address_key, %(reason)s, %(stream)s
      FROM given
     WHERE NOT EXISTS (SELECT FROM known WHERE known.address_key = given.address_key)
     ORDER BY address_key
        ON CONFLICT (workspace_id, address_key) DO UPDATE SET address_key = EXCLUDED.address_key
    RETURNING *
)
SELECT * FROM known UNION ALL SELECT * FROM added
"""

# A row of the workspace blocks all streams, except that some ignore unsubscribes. Where both exist, it comes last.
FIND_SUPPRESSED = f"""
SELECT given.number, s.id, s.email, s.reason, s.stream
  FROM unnest(%(blocked_workspaces)s::uuid[], %(blocked_keys)s::text[], %(blocked_streams)s::text[])
       WITH ORDINALITY AS given (workspace_id, address_key, stream, number)
  JOIN suppressions_suppression s ON s.workspace_id = given.workspace_id
   AND s.address_key IN (given.address_key, given.address_key || E'\\n' || given.stream)
 WHERE NOT (s.stream = '' AND s.reason = '{Suppression.Reason.UNSUBSCRIBE}' AND EXISTS (
       SELECT FROM streams_stream st
        WHERE st.workspace_id = given.workspace_id AND st.slug = given.stream AND st.ignores_unsubscribes))
 ORDER BY s.stream DESC
"""  # noqa: S608 - constants

# A workspace, an address and a stream.
Sending = tuple[str, str, str]
G = TypeVar("G", bound=Hashable)


@dataclass(frozen=True)
class SuppressionMatch:
    """The suppression of an address; email as spelled on the list. stream: empty if it blocks all of them."""

    id: str
    email: str
    reason: str
    stream: str = ""


def suppress_address(workspace: Workspace, *, address: str, reason: str, stream: str = "") -> tuple[Suppression, bool]:
    """Suppress an address; return its row and whether it is new.

    address: an addr-spec from `core.lib.email_addresses`. An address already suppressed keeps its row and reason.
    stream: the only one to block; empty for all.
    """
    (result,) = suppress_addresses(workspace, addresses=[address], reason=reason, stream=stream)
    return result


def suppress_addresses(
    workspace: Workspace, *, addresses: Sequence[str], reason: str, stream: str = ""
) -> list[tuple[Suppression, bool]]:
    """Suppress any number of addresses in one statement; return the row of each, in order, and whether it is new.

    An address given twice gets the same row twice. stream: as in suppress_address.
    """
    by_key = {suppression_key(address, stream=stream): address for address in reversed(addresses)}
    ids = {new_id("sup_"): key for key in by_key}
    values: dict[str, Any] = {
        "workspace": to_uuid(workspace.id, prefix="ws_"),
        "reason": reason,
        "stream": stream,
        "ids": [to_uuid(suppression_id, prefix="sup_") for suppression_id in ids],
        "emails": list(by_key.values()),
        "keys": list(by_key),
    }
    # Without a savepoint: callers with an open transaction do not continue after an error.
    with transaction.atomic(savepoint=False):
        rows = {row.address_key: row for row in Suppression.objects.raw(SUPPRESS, values)}
        _record_added(workspace, [row for row in rows.values() if row.id in ids], reason=reason, stream=stream)
    found = (rows[suppression_key(address, stream=stream)] for address in addresses)
    return [(row, row.id in ids) for row in found]


def suppress_manually(
    workspace: Workspace, *, addresses: Sequence[str], stream: str = ""
) -> list[tuple[Suppression, bool]]:
    """Run suppress_addresses with the reason `manual`. Raises StreamNotFound."""
    if stream:
        existing_stream(workspace, stream)
    return suppress_addresses(workspace, addresses=addresses, reason=Suppression.Reason.MANUAL, stream=stream)


def _record_added(workspace: Workspace, added: Sequence[Suppression], *, reason: str, stream: str) -> None:
    if not added:
        return
    record_events([_new_event(EventKind.SUPPRESSION_ADDED, row) for row in added])
    addresses = [row.email for row in added]
    # Only suppressions added by users and API keys are audited: bounces are numerous and have events.
    if reason == Suppression.Reason.MANUAL:
        about = addresses[0] if len(addresses) == 1 else CodedText("workspaces.address_count", count=len(addresses))
        record_action(workspace, AuditAction.SUPPRESSION_ADDED, about=about)
    transaction.on_commit(functools.partial(publish_notice, workspace.id, addresses, stream=stream, reason=reason))


def _new_event(kind: EventKind, suppression: Suppression) -> NewEvent:
    details = {"suppressionId": suppression.id, "email": suppression.email, "reason": suppression.reason}
    if suppression.stream:
        details["stream"] = suppression.stream
    return NewEvent(kind, workspace_id=suppression.workspace_id, details=details)


def suppress_in_workspaces(suppressions: Iterable[tuple[str, str, str, str]]) -> None:
    """Suppress addresses in any number of workspaces, each given as (workspace id, stream, reason, address).

    stream: the stream of the email; its properties decide whether the address is suppressed in it or in the workspace.
    """
    lists: dict[tuple[str, str, str], list[str]] = {}
    for workspace_id, stream, reason, address in suppressions:
        lists.setdefault((workspace_id, stream, reason), []).append(address)
    for (workspace_id, stream, reason), addresses in sorted(lists.items()):
        blocked = suppressed_stream(workspace_id, stream, reason)
        suppress_addresses(Workspace(id=workspace_id), addresses=addresses, reason=reason, stream=blocked)


@transaction.atomic
def delete_suppression(suppression: Suppression) -> None:
    """Delete a suppression. Raises NotFound if it was deleted in the meantime."""
    removed, _ = Suppression.objects.filter(id=suppression.id).delete()
    if not removed:
        raise NotFound
    record_events([_new_event(EventKind.SUPPRESSION_REMOVED, suppression)])
    record_action(suppression.workspace, AuditAction.SUPPRESSION_REMOVED, about=suppression.email)


@transaction.atomic
def delete_suppressions(workspace: Workspace, *, addresses: Sequence[str], stream: str = "") -> None:
    """Delete the suppressions of addresses; addresses that are not suppressed are ignored.

    stream: whose; empty for those of the whole workspace.
    """
    keys = [key for address in addresses for key in all_keys(address, stream=stream)]
    rows = workspace.suppressions.filter(address_key__in=keys)
    removed = list(rows.select_for_update())
    rows.filter(id__in=[suppression.id for suppression in removed]).delete()
    record_events([_new_event(EventKind.SUPPRESSION_REMOVED, suppression) for suppression in removed])
    for suppression in removed:
        record_action(workspace, AuditAction.SUPPRESSION_REMOVED, about=suppression.email)


def find_suppressed(
    workspace_id: str, addresses: Collection[str], *, stream: str = MAIN
) -> dict[str, SuppressionMatch]:
    """Return the suppressions that block a stream for given addresses, by normalized address, in one query."""
    find = suppressed_fragment(workspace_id, addresses, stream=stream)
    return read_suppressed(addresses, run_replanned(find.sql, find.params))


def suppressed_fragment(workspace_id: str, addresses: Collection[str], *, stream: str = MAIN) -> Fragment:
    """Return the SQL of `find_suppressed`, for statements that embed it; read_suppressed reads its rows."""
    return Fragment(FIND_SUPPRESSED, _values([(workspace_id, address, stream) for address in addresses]))


def read_suppressed(addresses: Collection[str], rows: Sequence[Sequence[Any]]) -> dict[str, SuppressionMatch]:
    """Return the result of `find_suppressed` from the rows of its SQL."""
    return _read([normalize_address(address) for address in addresses], rows)


def find_suppressed_sendings(sendings: Collection[Sending]) -> dict[Sending, SuppressionMatch]:
    """Return the suppressions that block given addresses of workspaces and streams, in one query."""
    listed = list(sendings)
    return _read(listed, run_replanned(FIND_SUPPRESSED, _values(listed)))


def _values(sendings: Sequence[Sending]) -> dict[str, Any]:
    """Return the parameters: a row for each address, then one for each hash of it (suppressions.erased)."""
    keys = [normalize_address(address) for _, address, _ in sendings]
    hashes = [hashed_keys(key) for key in keys]
    copies = 1 + len(settings.APP_KEYS)
    return {
        "blocked_workspaces": [to_uuid(workspace_id, prefix="ws_") for workspace_id, _, _ in sendings] * copies,
        "blocked_keys": [*keys, *(key for column in zip(*hashes, strict=True) for key in column)],
        "blocked_streams": [stream for _, _, stream in sendings] * copies,
    }


def _read(keys: Sequence[G], rows: Sequence[Sequence[Any]]) -> dict[G, SuppressionMatch]:
    """Return the matches by address; the rows of its hashes have numbers beyond those of the addresses."""
    return {
        keys[(number - 1) % len(keys)]: SuppressionMatch(from_uuid(id_, prefix="sup_"), email, reason, stream)
        for number, id_, email, reason, stream in rows
    }
