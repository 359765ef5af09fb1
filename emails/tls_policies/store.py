"""MTA-STS policies in the database, shared by the workers; also domains without one, for an hour."""

from typing import Any

from core.delivery.transports.tls_policies.sts_lookups import StsFinding, StsState
from core.delivery.transports.tls_policies.sts_policy import StsMode, StsPolicy
from core.lib.sql import run
from emails.pacing.database_thread import run_in_database_thread

STATE = """
mode, mx, max_age, record_id, error <> '', extract(epoch FROM now() - checked_at)::float,
extract(epoch FROM now() - fetched_at)::float, extract(epoch FROM expires_at - now())::float
"""
READ = f"SELECT {STATE} FROM emails_sts_policy WHERE domain = %s"  # noqa: S608 - constants
# A known policy stays until its end: whoever can make the lookup fail must not be able to end it.
KEEP = f"""
INSERT INTO emails_sts_policy AS known (domain, mode, mx, max_age, record_id, error, checked_at)
VALUES (%s, '', '{{}}', 0, '', %s, now())
ON CONFLICT (domain) DO UPDATE SET error = EXCLUDED.error, checked_at = now()
RETURNING {STATE}
"""  # noqa: S608 - constants
REPLACE = f"""
INSERT INTO emails_sts_policy AS known (domain, mode, mx, max_age, record_id, error, checked_at, fetched_at, expires_at)
VALUES (%s, %s, %s::text[], %s, %s, '', now(), now(), now() + make_interval(secs => %s))
ON CONFLICT (domain) DO UPDATE
   SET mode = EXCLUDED.mode, mx = EXCLUDED.mx, max_age = EXCLUDED.max_age, record_id = EXCLUDED.record_id,
       error = '', checked_at = now(), fetched_at = now(), expires_at = EXCLUDED.expires_at
RETURNING {STATE}
"""  # noqa: S608 - constants


class DatabaseStsStore:
    """The policies in the database for the network loop, as StsStore."""

    async def read(self, domain: str) -> StsState | None:
        state: StsState | None = await run_in_database_thread(read_state, domain)
        return state

    async def save(self, domain: str, finding: StsFinding) -> StsState:
        state: StsState = await run_in_database_thread(save_finding, domain, finding)
        return state


def read_state(domain: str) -> StsState | None:
    """Return what is known about the policy of a domain."""
    rows = run(READ, [domain])
    return _state(rows[0]) if rows else None


def save_finding(domain: str, finding: StsFinding) -> StsState:
    """Record the result of a lookup, and return what is known now."""
    policy = finding.policy
    if policy is None:
        return _state(run(KEEP, [domain, finding.error])[0])
    age = policy.max_age_seconds
    values = [domain, policy.mode.value, list(policy.mx), age, finding.record_id, age]
    return _state(run(REPLACE, values)[0])


def _state(row: tuple[Any, ...]) -> StsState:
    mode, mx, max_age, record_id, has_failed, checked_seconds, fetched_seconds, seconds_left = row
    is_live = bool(mode) and seconds_left > 0
    return StsState(
        policy=StsPolicy(StsMode(mode), tuple(mx), max_age) if is_live else None,
        record_id=record_id,
        checked_seconds=checked_seconds,
        fetched_seconds=fetched_seconds or 0.0,
        seconds_left=seconds_left or 0.0,
        has_failed=has_failed,
    )
