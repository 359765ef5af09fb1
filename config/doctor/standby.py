"""Checks of the standby of PostgreSQL, for installations that have one."""

from django.conf import settings

from config.doctor.diagnosis import Diagnosis, DoctorOptions, failed, ok, skip, warning
from core.lib.sql import run

MIB = 1024**2
# Write-ahead log that a standby has yet to replay before it takes over.
MAX_LAG_MIB = 64
CONNECTED = """
SELECT state, sync_state, coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), replay_lsn), 0)::bigint
  FROM pg_stat_replication WHERE state IS DISTINCT FROM 'backup' ORDER BY 3
"""
WAITING = "SELECT current_setting('synchronous_standby_names'), current_setting('synchronous_commit')"
# Values that wait for no standby.
LOCAL = ("off", "local")


def check_standby(_: DoctorOptions) -> Diagnosis:
    """Check that a standby is connected and has all acknowledged transactions. Skipped where none is expected."""
    ((names, synchronous_commit),), standbys = run(WAITING), run(CONNECTED)
    is_expected = names or standbys or "," in settings.DATABASES["default"]["HOST"]
    if not is_expected:
        return skip("PostgreSQL has no standby.")
    if any(state is None for state, *_ in standbys):
        return skip("Not checked: run GRANT pg_read_all_stats TO the role of DATABASE_URL as a superuser.")
    if not any(state == "streaming" for state, *_ in standbys):
        return warning(
            "No standby of PostgreSQL is connected: no server can take over.",
            remedy="Start the standby, and read its log and that of Patroni (patronictl list).",
        )
    if not any(kind in {"sync", "quorum"} for _, kind, _ in standbys):
        return warning(
            "The standby of PostgreSQL is asynchronous: if it takes over, the emails that were accepted last are lost.",
            remedy="Set synchronous_mode in Patroni (patronictl edit-config), or synchronous_standby_names.",
        )
    if synchronous_commit in LOCAL:
        return failed(
            f"synchronous_commit is {synchronous_commit}: transactions do not wait for the standby, and if it takes "
            "over, emails that were accepted are lost.",
            remedy="Set synchronous_commit = on, and reset it for the role and the database.",
        )
    return ok("A synchronous standby is connected.")


def check_lag(_: DoctorOptions) -> Diagnosis:
    behind = min(lag for state, _, lag in run(CONNECTED) if state == "streaming") // MIB
    if behind > MAX_LAG_MIB:
        return warning(
            f"The standby of PostgreSQL has yet to replay {behind} MiB, which a failover waits for.",
            remedy="Look for long queries on the standby, and compare its disk and memory with those of the primary.",
        )
    return ok(f"The standby of PostgreSQL has yet to replay {behind} MiB.")
