"""MTA-STS policies in the database, shared by the workers; also domains without one, for an hour."""

from typing import Any

from core.delivery.bounces.replies import TlsResult
from core.delivery.transports.tls_policies.sts_lookups import StsFinding, StsState
from core.delivery.transports.tls_policies.sts_policy import StsMode, StsPolicy
from core.lib.sql import run
from emails.pacing.database_thread import run_in_database_thread

STATE = """
mode, mx, max_age, record_id, error <> '', extract(epoch FROM now() - checked_at)::float,
extract(epoch FROM now() - fetched_at)::float, extract(epoch FROM expires_at - now())::float, failure, report_to
"""
READ = f"SELECT {STATE} FROM emails_sts_policy WHERE domain = %s"  # noqa: S608 - constants
# The columns that each lookup sets; those of reports stay if they were not looked up.
LOOKED_UP = """
error = EXCLUDED.error, failure = EXCLUDED.failure, checked_at = now(),
report_to = coalesce(%(report_to)s, known.report_to),
tlsa = CASE WHEN EXCLUDED.tlsa = '{}' THEN known.tlsa ELSE EXCLUDED.tlsa END
"""
# A known policy stays until its end: whoever can make the lookup fail must not be able to end it.
KEEP = f"""
INSERT INTO emails_sts_policy AS known
  (domain, mode, mx, max_age, record_id, error, failure, report_to, tlsa, checked_at)
VALUES (%(domain)s, '', '{{}}', 0, '', %(error)s, %(failure)s, coalesce(%(report_to)s, ''), %(tlsa)s::text[], now())
ON CONFLICT (domain) DO UPDATE SET {LOOKED_UP}
RETURNING {STATE}
"""  # noqa: S608 - constants
REPLACE = f"""
INSERT INTO emails_sts_policy AS known
  (domain, mode, mx, max_age, record_id, error, failure, report_to, tlsa, checked_at, fetched_at, expires_at)
VALUES (%(domain)s, %(mode)s, %(mx)s::text[], %(max_age)s, %(record_id)s, '', '', coalesce(%(report_to)s, ''),
        %(tlsa)s::text[], now(), now(), now() + make_interval(secs => %(max_age)s))
ON CONFLICT (domain) DO UPDATE
   SET mode = EXCLUDED.mode, mx = EXCLUDED.mx, max_age = EXCLUDED.max_age, record_id = EXCLUDED.record_id,
       fetched_at = now(), expires_at = EXCLUDED.expires_at, {LOOKED_UP}
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
    values: dict[str, Any] = {"domain": domain, "report_to": finding.report_to, "tlsa": list(finding.tlsa)}
    if policy is None:
        return _state(run(KEEP, {**values, "error": finding.error, "failure": finding.failure or ""})[0])
    values |= {
        "mode": policy.mode.value,
        "mx": list(policy.mx),
        "max_age": policy.max_age_seconds,
        "record_id": finding.record_id,
    }
    return _state(run(REPLACE, values)[0])


def _state(row: tuple[Any, ...]) -> StsState:
    mode, mx, max_age, record_id, has_failed, checked_seconds, fetched_seconds, seconds_left, failure, report_to = row
    is_live = bool(mode) and seconds_left > 0
    return StsState(
        policy=StsPolicy(StsMode(mode), tuple(mx), max_age) if is_live else None,
        record_id=record_id,
        checked_seconds=checked_seconds,
        fetched_seconds=fetched_seconds or 0.0,
        seconds_left=seconds_left or 0.0,
        has_failed=has_failed,
        failure=TlsResult(failure) if failure and not is_live else None,
        report_to=report_to,
    )
