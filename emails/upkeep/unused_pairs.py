"""Deletion of the paces of receivers that no email was sent to for some time (docs/decisions/0365)."""

from collections.abc import Iterator

from core.lib.sql import delete_batches
from core.lib.worker.stages import Stage

BATCH_SIZE = 1000
# A process uses the number of a pair for hours after its last report; what was learnt is forgotten after a day.
UNUSED_DAYS = 2
# The days of a new address go on at a receiver that gets little email (docs/decisions/0366).
NEW_DAYS = 30
# Those that the staff has changed stay, and the rates of listed addresses.
DELETE = f"""
WITH unused AS MATERIALIZED (
    SELECT id FROM emails_receiverpace p
     WHERE updated_at < now() - make_interval(days => {UNUSED_DAYS}) AND release_at IS NULL
       AND pinned IS NULL AND stopped_at IS NULL
       AND (began_on IS NULL AND former_rate IS NULL OR updated_at < now() - make_interval(days => {NEW_DAYS}))
       AND NOT EXISTS (SELECT FROM emails_pending WHERE stage = {Stage.PACED} AND pair = p.id)
     LIMIT {BATCH_SIZE} FOR UPDATE SKIP LOCKED
)
DELETE FROM emails_receiverpace WHERE id IN (SELECT id FROM unused)
"""  # noqa: S608 - constants


def delete_unused_pairs() -> Iterator[None]:
    """Delete pairs without a report for UNUSED_DAYS, and without waiting entries, in batches; yield after each."""
    return delete_batches(DELETE, size=BATCH_SIZE)
