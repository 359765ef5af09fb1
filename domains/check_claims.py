"""Claim a check, and write down what it saw. Between the two the network is asked, with no transaction open.

Checks are numbered: whichever comes back late finds a newer one written down and changes nothing.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import F
from django.db.models.functions import Coalesce, Now

from api.errors import RateLimitExceeded
from domains.lifecycle import OLD_KEY_KEPT, VerificationOutcome, next_status, next_wait, outcome_of
from domains.models import MAY_SEND, Domain
from domains.record_checks.results import RecordCheck, RecordStatus, VerificationResult, to_json
from lib.ids import from_uuid
from lib.worker.failpoints import failpoint
from workspaces.audit import Act, note
from workspaces.models import Workspace

# A check holds a web process for up to five seconds; a few for a workspace leave the others theirs.
AT_ONCE_A_WORKSPACE = 3
CHECK_ENDS_AFTER = timedelta(seconds=6)
# The due time moves first, so that a process that dies with a claim only delays it.
CLAIM_DUE = """
UPDATE domains_domain SET check_due_at = statement_timestamp() + interval '5 minutes', checks_begun = checks_begun + 1
WHERE id IN (
  SELECT id FROM domains_domain WHERE check_due_at <= statement_timestamp()
  ORDER BY check_due_at LIMIT %s FOR UPDATE SKIP LOCKED
)
RETURNING id, checks_begun
"""


@dataclass(frozen=True)
class CheckClaim:
    """The right to write one check down, where no newer one is."""

    domain_id: str
    number: int


def claim_check(domain: Domain) -> CheckClaim | None:
    """Claim a check that the owner asked for; None while another one asked for is under way.

    Raises RateLimitExceeded where too many of the workspace are.
    """
    with transaction.atomic():
        Workspace.objects.select_for_update(no_key=True).get(id=domain.workspace_id)
        under_way = set(
            Domain.objects.filter(workspace_id=domain.workspace_id, checking_until__gt=Now()).values_list(
                "id", flat=True
            )
        )
        if domain.id in under_way:
            return None
        if len(under_way) >= AT_ONCE_A_WORKSPACE:
            raise RateLimitExceeded(
                f"{len(under_way)} domains of this workspace are being checked; try again in a moment.",
                headers={"Retry-After": "5"},
            )
        mine = Domain.objects.filter(id=domain.id)
        mine.update(checks_begun=F("checks_begun") + 1, checking_until=Now() + CHECK_ENDS_AFTER, watched_since=Now())
        number = mine.values_list("checks_begun", flat=True).first()
    return None if number is None else CheckClaim(domain.id, number)


def claim_due(limit: int) -> list[CheckClaim]:
    """Claim the checks that are due; any number of processes may do so at once."""
    with connection.cursor() as cursor:
        cursor.execute(CLAIM_DUE, [limit])
        return [CheckClaim(from_uuid(row, prefix="dom_"), number) for row, number in cursor.fetchall()]


@transaction.atomic
def record_check(ticket: CheckClaim, sight: VerificationResult) -> None:
    """Write down what a check saw; nothing where the domain is gone or a newer check is written down."""
    older = Domain.objects.filter(id=ticket.domain_id, checks_recorded__lt=ticket.number)
    domain = older.select_for_update(no_key=True, of=("self",)).annotate(clock=Now()).first()
    if domain is None:
        return
    _record_keys(domain, sight)
    changes = _changes(domain, outcome_of(sight), domain.clock)
    if changes["verified_at"] != domain.verified_at:
        note(domain.workspace, Act.DOMAIN_VERIFIED, about=domain.name)
    Domain.objects.filter(id=domain.id).update(
        checks_recorded=ticket.number,
        last_checked_at=Now(),
        checking_until=None,
        findings=to_json(sight),
        return_path_seen_at=_since("return_path_seen_at", sight.return_path),
        **changes,
    )
    failpoint("domains.before_record_commit")


def _changes(domain: Domain, outcome: VerificationOutcome, now: datetime) -> dict[str, Any]:
    """Return status, the count of absences and the time of the next check."""
    missing_since, absences = {
        VerificationOutcome.PROVEN: (None, 0),
        VerificationOutcome.REFUTED: (domain.missing_since or now, min(domain.absences + 1, 1000)),
        VerificationOutcome.UNKNOWN: (domain.missing_since, domain.absences),
    }[outcome]
    before = Domain.Status(domain.status)
    status = next_status(before, outcome, missing_for=now - (missing_since or now), absences=absences)
    is_waiting = domain.dkim_keys.filter(seen_at=None, retired_at=None).exists()
    wait = next_wait(status, outcome, watched_for=now - domain.watched_since, is_waiting=is_waiting)
    is_newly_proven = status is Domain.Status.VERIFIED and before not in MAY_SEND
    return {
        "status": status,
        "missing_since": missing_since,
        "absences": absences,
        "check_due_at": now + wait,
        "verified_at": now if is_newly_proven else domain.verified_at,
    }


def _record_keys(domain: Domain, sight: VerificationResult) -> None:
    """Write down which keys are seen, retire those that a newer one replaces, and delete what was kept long enough."""
    for selector, finding in sight.keys.items():
        domain.dkim_keys.filter(selector=selector).update(seen_at=_since("seen_at", finding))
    signing = domain.dkim_keys.exclude(seen_at=None).order_by("-created_at").first()
    if signing is None:
        return
    older = domain.dkim_keys.filter(created_at__lt=signing.created_at)
    older.filter(retired_at__lt=Now() - OLD_KEY_KEPT).delete()
    older.filter(retired_at=None).update(retired_at=Now())
    domain.dkim_keys.filter(created_at__gte=signing.created_at).update(retired_at=None)


def _since(field: str, finding: RecordCheck) -> Any:
    """Return since when a thing is seen: from now on, from before, or no longer; without an answer as it was."""
    kept = {RecordStatus.RIGHT: Coalesce(F(field), Now()), RecordStatus.UNKNOWN: F(field)}
    return kept.get(finding.verdict)
