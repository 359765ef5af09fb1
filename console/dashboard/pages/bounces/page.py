"""Causes of bounces, deferrals and failures of a period, as rows for a table."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta
from typing import Any

from django.http import HttpRequest
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from analytics.advice import Advice
from analytics.bounces import MAX_EVENTS, BounceCauses, BounceReason, BounceSample, BouncingHost, read_causes
from console.dashboard.auth.current_workspace import current_workspace
from console.dashboard.texts.reasons import EXPLANATIONS
from console.dashboard.ui.streams import selected_stream, streams_of
from console.documentation.pages import URL
from core.lib.translation import translate
from emails.receivers.pair_status import read_slow_receivers
from events.kinds import EventKind

PERIODS = (7, 30, 90)
DEFAULT_PERIOD = 30


@dataclass(frozen=True)
class EventTab:
    """A kind of event.

    note: its meaning.
    none: the title of the page without such events.
    """

    name: str | Promise
    note: str | Promise
    none: str | Promise


TABS: dict[EventKind, EventTab] = {
    EventKind.BOUNCED: EventTab(
        _("Bounced"), _("Permanent refusals: Postrider does not try again."), _("No bounces in this period")
    ),
    EventKind.FAILED: EventTab(
        _("Failed"), _("Deliveries that were abandoned, mostly after all attempts."), _("No failures in this period")
    ),
    EventKind.DEFERRED: EventTab(
        _("Deferred"), _("Temporary refusals: other attempts follow."), _("No deferrals in this period")
    ),
}


@dataclass(frozen=True)
class CauseRow:
    """A reason or a host.

    percent: the share of all recipients.
    title: the meaning of a reason, or the name of a host.
    note: the top reason of a host.
    advice: empty for a host if a reason has the same.
    reply: the codes and the text of the example.
    """

    title: str | Promise
    code: str
    recipients: int
    percent: float
    note: str | Promise
    advice: str
    url: str
    sample: BounceSample

    @property
    def reply(self) -> str:
        code = "" if self.sample.code is None else str(self.sample.code)
        return f"{code} {self.sample.message}".strip()


def bounces(request: HttpRequest) -> dict[str, Any]:
    """Return the context of the page. Days begin in the time zone of the member."""
    stream = selected_stream(request)
    event, days = read_event(request), read_days(request)
    now, workspace = timezone.now(), current_workspace(request)
    causes = read_causes(
        workspace,
        event=event,
        start=start_of_period(now, days=days),
        end=now,
        stream=stream.slug if stream else "",
    )
    return {
        "tabs": TABS.items(),
        "event": event,
        "tab": TABS[event],
        "periods": PERIODS,
        "days": days,
        "streams": streams_of(request),
        "stream": stream,
        "causes": causes,
        "slow_receivers": read_slow_receivers(workspace),
        "is_cut": causes.counted_from > causes.start,
        "max_events": MAX_EVENTS,
        "reasons": list(reason_rows(causes)),
        "hosts": list(host_rows(causes)),
        "other_percent": 100 * causes.other_hosts / max(causes.recipients, 1),
    }


def read_event(request: HttpRequest) -> EventKind:
    raw = request.GET.get("event", "")
    return next((kind for kind in TABS if kind == raw), EventKind.BOUNCED)


def read_days(request: HttpRequest) -> int:
    raw = request.GET.get("days")
    return next((days for days in PERIODS if str(days) == raw), DEFAULT_PERIOD)


def start_of_period(now: datetime, *, days: int) -> datetime:
    """Return the first midnight of a number of days that end with today, in the active time zone."""
    first = timezone.localdate(now) - timedelta(days=days - 1)
    return datetime.combine(first, time.min, timezone.get_current_timezone())


def reason_rows(causes: BounceCauses) -> Iterator[CauseRow]:
    for one in causes.reasons:
        yield _row(one, EXPLANATIONS.get(one.reason, one.reason), code=one.reason)


def host_rows(causes: BounceCauses) -> Iterator[CauseRow]:
    given = {one.advice for one in causes.reasons}
    for one in causes.hosts:
        row = _row(one, one.name, note=EXPLANATIONS.get(one.top_reason, one.top_reason))
        # The list of reasons has the advice about a reason; only that about the host is added.
        yield replace(row, advice="") if one.advice in given else row


def _row(
    one: BounceReason | BouncingHost, title: str | Promise, *, code: str = "", note: str | Promise = ""
) -> CauseRow:
    advice: Advice = one.advice
    text, url = translate(advice.text), f"{URL}{advice.page}"
    return CauseRow(title, code, one.recipients, 100 * one.share, note, text, url, one.sample)
