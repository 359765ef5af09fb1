"""Backlog of erasures and exports, for metrics."""

from core.lib.sql import run

READ = """
SELECT 'erasure', extract(epoch FROM now() - min(due_at))
  FROM privacy_erasure WHERE completed_at IS NULL AND due_at <= now()
UNION ALL
SELECT 'export', extract(epoch FROM now() - min(due_at))
  FROM privacy_subjectexport WHERE completed_at IS NULL AND email <> '' AND due_at <= now()
"""


def read_oldest_seconds() -> dict[str, float]:
    """Return the age of the oldest due erasure and export in seconds, 0 if none is due."""
    return {kind: float(seconds or 0) for kind, seconds in run(READ)}
