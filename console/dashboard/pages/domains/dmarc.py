"""The DMARC page of a domain: is my mail authenticated, who else sends in my name, may the policy be stricter?"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django import forms
from django.utils.formats import number_format
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from unfold.widgets import UnfoldAdminTextInputWidget

from console.dashboard.pages.domains.records import Summary
from core.lib.translation import translate
from domains.models import Domain, DomainReport
from domains.names import InvalidDomainName
from domains.reports.advice import MIN_ALIGNED, PolicyAdvice, advise_policy
from domains.reports.classification import Whose
from domains.reports.comparison import DmarcComparison, floored_percent, read_comparison
from domains.reports.sources import (
    MAX_LABEL,
    MailSource,
    name_source,
    parse_sender_domain,
    parse_source_address,
    read_sources,
)
from domains.reports.tls import read_tls_summary

DAYS = 30
MAX_SHOWN_SOURCES = 100
MAX_SHOWN_REPORTS = 10
CLASSES: dict[str, tuple[str | Promise, str]] = {
    Whose.OURS: (gettext_lazy("ours"), "success"),
    Whose.OURS_BROKEN: (gettext_lazy("ours, not signed"), "danger"),
    Whose.FORWARDED: (gettext_lazy("forwarded"), "info"),
    Whose.KNOWN: (gettext_lazy("named"), "neutral"),
    Whose.UNKNOWN: (gettext_lazy("unknown source"), "warning"),
}


@dataclass(frozen=True)
class MailSourceRow:
    """A source with the word and the tone of its class."""

    source: MailSource
    word: str | Promise
    tone: str


class SourceForm(forms.Form):
    """A label of a source."""

    source = forms.CharField(
        label=gettext_lazy("Address or domain"),
        max_length=253,
        widget=UnfoldAdminTextInputWidget({"autocomplete": "off", "autocapitalize": "none"}),
        help_text=gettext_lazy("An address of the list, or a domain that is shown below one."),
    )
    label = forms.CharField(
        label=gettext_lazy("Sender"),
        max_length=MAX_LABEL,
        required=False,
        widget=UnfoldAdminTextInputWidget({"autocomplete": "off"}),
        help_text=gettext_lazy("Such as Newsletter tool. Leave it empty to forget the source."),
    )

    def clean_source(self) -> dict[str, Any]:
        """Return the arguments of name_source for the text: an address, else a domain."""
        text = self.cleaned_data["source"].strip()
        try:
            return {"ip": str(parse_source_address(text))}
        except ValueError:
            pass
        try:
            return {"name": parse_sender_domain(text)}
        except InvalidDomainName as error:
            raise forms.ValidationError(translate(str(error))) from error

    def save(self, domain: Domain) -> None:
        name_source(domain, **self.cleaned_data["source"], label=self.cleaned_data["label"])


def dmarc_context(domain: Domain) -> dict[str, Any]:
    """Return the context of dashboard/domains/dmarc.html: the reports of the last DAYS."""
    end = datetime.now(UTC).date() + timedelta(days=1)
    days = {"first": end - timedelta(days=DAYS), "end": end}
    comparison, sources, advice = read_comparison(domain, **days), read_sources(domain, **days), advise_policy(domain)
    reports = domain.reports.filter(kind=DomainReport.AggregateKind.DMARC).defer("source")
    return {
        "domain": domain,
        "days": DAYS,
        "answers": [_authenticated(comparison), _others(comparison, sources), _policy(advice)],
        "organizations": [translate(one.summary) for one in comparison.organizations],
        "sources": [MailSourceRow(one, *CLASSES[one.whose]) for one in sources[:MAX_SHOWN_SOURCES]],
        "advice": advice,
        "requirements": [(one.is_met, translate(one.text)) for one in advice.requirements],
        "notes": [translate(note) for note in advice.notes],
        "reports": reports[:MAX_SHOWN_REPORTS],
        "tls": read_tls_summary(domain, **days),
    }


def _authenticated(comparison: DmarcComparison) -> Summary:
    """Answer whether the domain's own email is authenticated everywhere."""
    share = comparison.aligned_share
    if share is None:
        text = _("No report about your own email yet. Reports arrive a day or two after it, if the DMARC record asks.")
        return Summary("neutral", "schedule", text)
    percent = number_format(floored_percent(share), 1)
    values = {"percent": percent, "count": len(comparison.all_organizations)}
    text = ngettext(
        "%(percent)s%% of your email passed DMARC, as %(count)s organization reports.",
        "%(percent)s%% of your email passed DMARC, as %(count)s organizations report.",
        len(comparison.all_organizations),
    )
    return Summary(*(("success", "verified") if share >= MIN_ALIGNED else ("warning", "gpp_maybe")), text % values)


def _others(comparison: DmarcComparison, sources: Sequence[MailSource]) -> Summary:
    """Answer who else sends in the domain's name."""
    unknown = [one for one in sources if one.whose == Whose.UNKNOWN]
    if not unknown:
        return Summary("success", "person_check", _("Nobody unknown sends email in the name of this domain."))
    text = ngettext(
        "%(count)s unknown source sent %(messages)s messages in the name of this domain.",
        "%(count)s unknown sources sent %(messages)s messages in the name of this domain.",
        len(unknown),
    )
    messages = number_format(comparison.by_class[Whose.UNKNOWN], force_grouping=True)
    values = {"count": len(unknown), "messages": messages}
    return Summary("warning", "person_alert", text % values)


def _policy(advice: PolicyAdvice) -> Summary:
    """Answer whether the policy may be stricter."""
    is_open = advice.record is not None
    tone, icon = ("success", "lock") if is_open or advice.policy == "reject" else ("neutral", "hourglass")
    return Summary(tone, icon, translate(advice.summary))
