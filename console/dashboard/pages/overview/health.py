"""Health of a workspace: rates against their limits, domains and DMARC, each with the next step."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from django.conf import settings
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _

from analytics.outcomes import DayOutcomes, read_outcomes
from analytics.reputation.rates import PERIOD_DAYS
from console.dashboard.templatetags.percent import rate_text
from core.workspaces.models import Workspace
from domains.models import Domain
from domains.record_checks.results import RecordStatus, VerificationResult, from_json
from domains.services import is_dns_optional

# The limits of large mailbox providers, unless the operator has set others.
USUAL_BOUNCE_PERCENT = 5.0
USUAL_COMPLAINT_PERCENT = 0.1
POLICY = re.compile(r"(?:^|;)\s*p\s*=\s*(none|quarantine|reject)\s*(?:;|$)", re.IGNORECASE)
MAX_DOMAINS = 100
# One complaint among fewer recipients is a rate above every limit.
MIN_SENT = 100
# From the one that needs no step to the one that needs it first.
TONES = ("neutral", "success", "warning", "danger")
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


@dataclass(frozen=True)
class HealthVerdict:
    """The one sentence above the numbers; the tone is that of the worst item."""

    tone: str
    text: str | Promise

    @property
    def needs_a_step(self) -> bool:
        return self.tone in {"warning", "danger"}


def bounce_limit() -> float:
    return float(settings.BOUNCE_WARN_PERCENT or USUAL_BOUNCE_PERCENT)


def complaint_limit() -> float:
    return float(settings.COMPLAINT_WARN_PERCENT or USUAL_COMPLAINT_PERCENT)


def percent_of(count: int, total: int) -> float | None:
    """Return a percentage; None of nothing."""
    return 100 * count / total if total else None


def rate_tone(percent: float, limit: float) -> str:
    """Return the tone of a rate: more than half of the limit is a warning."""
    return "danger" if percent > limit else "warning" if percent > limit / 2 else "success"


def read_verdict(items: Sequence[HealthItem]) -> HealthVerdict:
    """Return the verdict on a workspace or a stream: the first of its worst items, or that none needs a step."""
    worst = max(items, key=lambda item: TONES.index(item.tone))
    verdict = HealthVerdict(worst.tone, _("Nothing needs your attention."))
    if not verdict.needs_a_step:
        return verdict
    return HealthVerdict(worst.tone, _("%(title)s: %(value)s") % {"title": worst.title, "value": worst.value})


def read_health(workspace: Workspace) -> list[HealthItem]:
    """Return the health of a workspace, in two queries."""
    today = datetime.now(UTC).date()
    days = read_outcomes(workspace, first=today - timedelta(days=PERIOD_DAYS - 1), last=today)
    return [*rate_items(days), *_domain_items(workspace)]


def rate_items(days: Sequence[DayOutcomes]) -> list[HealthItem]:
    """Return the bounce and complaint rates of some days."""
    sent, bounced, complained = (sum(day.rated[name] for day in days) for name in ("sent", "bounced", "complained"))
    emails = reverse("dashboard:emails_email_changelist")
    bounces = _rate_item(_("Bounce rate"), bounced, sent, bounce_limit())
    complaints = _rate_item(_("Complaint rate"), complained, sent, complaint_limit())
    return [
        _with_advice(bounces, _("Remove addresses that do not exist from your lists."), reverse("dashboard:bounces")),
        _with_advice(complaints, _("Send only to people who expect the email."), f"{emails}?event=complained"),
    ]


def _rate_item(title: str, count: int, sent: int, limit: float) -> HealthItem:
    """Return the rate beside its limit; fewer than MIN_SENT recipients are not judged."""
    percent = percent_of(count, sent)
    if percent is None:
        return HealthItem("neutral", title, _("no data"))
    tone = "neutral" if sent < MIN_SENT else rate_tone(percent, limit)
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
