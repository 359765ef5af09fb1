"""Health of a workspace: rates against their limits, domains and DMARC, each with the next step."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.urls import reverse
from django.utils.formats import number_format
from django.utils.translation import gettext as _

from analytics.outcomes import DayOutcomes, read_outcomes
from analytics.reputation.rates import PERIOD_DAYS
from core.workspaces.models import Workspace
from domains.models import Domain
from domains.record_checks.results import RecordStatus, VerificationResult, from_json
from domains.services import is_dns_optional

# The limits of large mailbox providers, unless the operator has set others.
USUAL_BOUNCE_PERCENT = 5.0
USUAL_COMPLAINT_PERCENT = 0.1
POLICY = re.compile(r"(?:^|;)\s*p\s*=\s*(none|quarantine|reject)\s*(?:;|$)", re.IGNORECASE)
MAX_DOMAINS = 100
# DMARC policies, the weakest first; None is no policy.
STRENGTHS = (None, "none", "quarantine", "reject")


@dataclass(frozen=True)
class HealthItem:
    """One line of the card.

    value: the text beside the title.
    advice: the next step, empty if there is none.
    """

    tone: str
    title: str
    value: str
    advice: str = ""
    url: str = ""


def bounce_limit() -> float:
    return float(settings.BOUNCE_WARN_PERCENT or USUAL_BOUNCE_PERCENT)


def complaint_limit() -> float:
    return float(settings.COMPLAINT_WARN_PERCENT or USUAL_COMPLAINT_PERCENT)


def percent_of(count: int, total: int) -> float | None:
    """Return a percentage; None of nothing."""
    return 100 * count / total if total else None


def rate_text(percent: float) -> str:
    """Return a percentage with up to two decimals, in the language of the page."""
    return number_format(f"{percent:.2f}".rstrip("0").rstrip("."))


def read_health(workspace: Workspace) -> list[HealthItem]:
    """Return the health of a workspace, in two queries."""
    today = datetime.now(UTC).date()
    days = read_outcomes(workspace, first=today - timedelta(days=PERIOD_DAYS - 1), last=today)
    return [*rate_items(days), *_domain_items(workspace)]


def rate_items(days: Sequence[DayOutcomes]) -> list[HealthItem]:
    """Return the bounce and complaint rates of some days."""
    sent, bounced, complained = (sum(day.rated[name] for day in days) for name in ("sent", "bounced", "complained"))
    emails = reverse("dashboard:emails_email_changelist")
    bounces = _rate_item(_("Bounce rate"), percent_of(bounced, sent), bounce_limit())
    complaints = _rate_item(_("Complaint rate"), percent_of(complained, sent), complaint_limit())
    return [
        _with_advice(bounces, _("Remove addresses that do not exist from your lists."), reverse("dashboard:bounces")),
        _with_advice(complaints, _("Send only to people who expect the email."), f"{emails}?event=complained"),
    ]


def _rate_item(title: str, percent: float | None, limit: float) -> HealthItem:
    if percent is None:
        return HealthItem("neutral", title, _("no data"))
    tone = "danger" if percent > limit else "warning" if percent > limit / 2 else "success"
    values = {"rate": rate_text(percent), "limit": rate_text(limit)}
    return HealthItem(tone, title, _("%(rate)s%% (limit %(limit)s%%)") % values)


def _with_advice(item: HealthItem, advice: str, url: str) -> HealthItem:
    """Return the item with its next step if it needs one."""
    is_fine = item.tone in {"success", "neutral"}
    return item if is_fine else HealthItem(item.tone, item.title, item.value, advice, url)


def _domain_items(workspace: Workspace) -> Iterator[HealthItem]:
    """Yield the state of the domain and of the DMARC policy that most need a step."""
    if is_dns_optional():
        yield HealthItem("neutral", _("DNS records"), _("not needed"), _("All emails stay in the built-in inbox."))
        return
    domains = list(workspace.domains.order_by("created_at")[:MAX_DOMAINS])
    if not domains:
        url = reverse("dashboard:domains_domain_add")
        yield HealthItem("neutral", _("Domain"), _("none"), _("Add the domain that you send from."), url)
        return
    pending = next((domain for domain in domains if domain.verified_at is None or domain.status == "failed"), None)
    if pending is not None:
        yield _domain_item("warning", pending, _("not verified"), _("Publish its DNS records, then verify it."))
    else:
        yield _domain_item("success", domains[0], _("verified"), "")
    yield _dmarc_item(min(domains, key=lambda domain: STRENGTHS.index(_policy(domain))))


def _domain_item(tone: str, domain: Domain, value: str, advice: str) -> HealthItem:
    return HealthItem(tone, domain.name, value, advice, reverse("dashboard:domains_domain_change", args=[domain.id]))


def _dmarc_item(domain: Domain) -> HealthItem:
    policy = _policy(domain)
    url = reverse("dashboard:domains_domain_change", args=[domain.id])
    if policy is None:
        advice = _("Publish a DMARC record for %(domain)s.") % {"domain": domain.name}
        return HealthItem("warning", "DMARC", _("no policy"), advice, url)
    if policy == "none":
        advice = _("Once its reports show only your own emails, change the policy of %(domain)s to quarantine.")
        return HealthItem("neutral", "DMARC", policy, advice % {"domain": domain.name}, url)
    return HealthItem("success", "DMARC", policy)


def _policy(domain: Domain) -> str | None:
    """Return the published DMARC policy: none, quarantine or reject; None without a valid record."""
    result = from_json(VerificationResult, domain.findings)
    is_valid = result is not None and result.dmarc.status == RecordStatus.VALID
    match = POLICY.search(result.dmarc.found or "") if result and is_valid else None
    return match[1].lower() if match else None
