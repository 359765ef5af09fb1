"""Deletion of reports: their bytes after 30 days, their rows after 400, and those of deleted domains.

The sums of the days stay as long as the domain.
"""
# ruff: noqa: S608 - constants

from collections.abc import Iterator

from core.erasing.steps import ErasureScope
from core.lib.ids import to_uuid
from core.lib.sql import delete_batches, run

SOURCE_DAYS = 30
ROW_DAYS = 400
# A report has up to 50,000 rows.
BATCH_SIZE = 20
COUNTED = "r.state = 'read'"
EMPTY = f"""
WITH old AS (
    SELECT r.id FROM domains_domainreport r
     WHERE r.source IS NOT NULL AND r.received_at < now() - make_interval(days => {SOURCE_DAYS}) AND {COUNTED}
     LIMIT %(limit)s FOR UPDATE SKIP LOCKED
)
UPDATE domains_domainreport SET source = NULL WHERE id IN (SELECT id FROM old)
"""
# {old} selects reports; %(limit)s is their number.
DELETE = """
WITH old AS (
    SELECT r.id, r.organization FROM domains_domainreport r WHERE {old} LIMIT %(limit)s FOR UPDATE SKIP LOCKED
), dmarc AS (
    DELETE FROM domains_dmarcrow w USING old WHERE w.report_id = old.id
    RETURNING w.domain_id, w.day, old.organization, w.whose, w.count, 'pass' IN (w.dkim, w.spf) AS is_aligned
), tls AS (
    DELETE FROM domains_tlsrow w USING old WHERE w.report_id = old.id
), sums AS (
    {sums}
)
DELETE FROM domains_domainreport WHERE id IN (SELECT id FROM old)
"""
SUMS = """
    INSERT INTO domains_dmarcday AS s (domain_id, day, organization, whose, messages, aligned)
    SELECT domain_id, day, organization, whose, sum(count), coalesce(sum(count) FILTER (WHERE is_aligned), 0)
      FROM dmarc JOIN domains_domain d ON d.id = dmarc.domain_id GROUP BY 1, 2, 3, 4
        ON CONFLICT (domain_id, day, organization, whose)
        DO UPDATE SET messages = s.messages + EXCLUDED.messages, aligned = s.aligned + EXCLUDED.aligned
"""
NO_SUMS = "SELECT"
NOT_COUNTED = f"r.received_at < now() - make_interval(days => {SOURCE_DAYS}) AND r.source IS NOT NULL AND NOT {COUNTED}"
OLD = f"r.received_at < now() - make_interval(days => {ROW_DAYS})"
OF_NO_DOMAIN = "NOT EXISTS (SELECT FROM domains_domain d WHERE d.id = r.domain_id)"
OF_WORKSPACE = "r.domain_id IN (SELECT id FROM domains_domain WHERE workspace_id = %(workspace)s)"
# A reporter may send from the address of a person.
ERASE = f"""
WITH sent AS (
    SELECT r.id, lower(r.sender) AS address FROM domains_domainreport r
     WHERE lower(r.sender) = ANY(%(addresses)s) AND r.read_at IS NOT NULL AND {OF_WORKSPACE} FOR UPDATE
)
UPDATE domains_domainreport r SET sender = '', source = NULL FROM sent WHERE r.id = sent.id RETURNING sent.address
"""


def delete_expired_reports() -> Iterator[None]:
    """Delete what is older than its days, and the reports of deleted domains; yield after each batch."""
    values = {"limit": BATCH_SIZE}
    for old in (NOT_COUNTED, OF_NO_DOMAIN):
        yield from delete_batches(DELETE.format(old=old, sums=NO_SUMS), values, size=BATCH_SIZE)
    yield from delete_batches(DELETE.format(old=OLD, sums=SUMS), values, size=BATCH_SIZE)
    yield from delete_batches(EMPTY, values, size=BATCH_SIZE)


def delete_workspace_reports(workspace_id: str) -> Iterator[None]:
    """Delete all reports about the domains of a workspace; yield after each batch."""
    values = {"limit": BATCH_SIZE, "workspace": to_uuid(workspace_id, prefix="ws_")}
    return delete_batches(DELETE.format(old=OF_WORKSPACE, sums=NO_SUMS), values, size=BATCH_SIZE)


def erase_senders(scope: ErasureScope) -> list[str]:
    """Remove the addresses of people from the reports that they sent, with the bytes; return one for each report."""
    values = {"addresses": list(scope.addresses), "workspace": to_uuid(scope.workspace_id, prefix="ws_")}
    return [address for (address,) in run(ERASE, values)]
