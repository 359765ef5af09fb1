"""Receivers page of the staff admin: the pace of each source at each receiver (docs/decisions/0363)."""

from collections.abc import Callable
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy
from unfold.widgets import UnfoldAdminIntegerFieldWidget

from console.dashboard.staff.queue import refuse_without
from console.dashboard.ui.confirm import Confirmation
from console.system_mail.models import TlsReport
from emails.models import MtaStsPolicy, ReceiverPace
from emails.receivers.changes import LEAST_RATE, MOST_RATE, pin_rate, release_pair, suspend_pair, unpin_rate
from emails.receivers.pair_status import find_pairs, read_pair_statuses
from emails.receivers.states import PairState

# Rows of the table; filters and the API reach others.
MAX_ROWS = 100
MAX_POLICIES = MAX_REPORTS = 50
STATES: dict[PairState, str | Promise] = {
    PairState.STOPPED: gettext_lazy("suspended by the staff"),
    PairState.SUSPENDED: gettext_lazy("suspended by the receiver"),
    PairState.LIMITED: gettext_lazy("limited"),
    PairState.LEARNING: gettext_lazy("learning"),
}
TONES = {
    PairState.STOPPED: "danger",
    PairState.SUSPENDED: "danger",
    PairState.LIMITED: "warning",
    PairState.LEARNING: "success",
}
VIEW, CHANGE = "emails.view_receiverpace", "emails.change_receiverpace"


class PinnedRateForm(forms.Form):
    """The rate of a pair that the staff sets; empty for the learnt one."""

    per_minute = forms.IntegerField(
        label=gettext_lazy("Messages a minute"),
        required=False,
        min_value=LEAST_RATE,
        max_value=MOST_RATE,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text=gettext_lazy("Leave it empty to use the rate that Postrider learns."),
    )


def receivers_page(request: HttpRequest, context: dict[str, Any]) -> TemplateResponse:
    """Show the paces. context: the context of each page of the site."""
    refuse_without(request, VIEW)
    receiver, state = request.GET.get("receiver", ""), request.GET.get("state", "")
    state = state if state in PairState.values else ""
    rows = list(find_pairs(receiver=receiver[:253], state=state)[: MAX_ROWS + 1])
    page = {
        **context,
        "title": gettext("Receivers"),
        "rows": [(one, STATES[one.state], TONES[one.state]) for one in read_pair_statuses(rows[:MAX_ROWS])],
        "states": {one.value: label for one, label in STATES.items()},
        "state": state,
        "receiver": receiver,
        "shown": MAX_ROWS if len(rows) > MAX_ROWS else 0,
        "policies": MtaStsPolicy.objects.in_force().filter(domain__contains=receiver[:253].lower())[:MAX_POLICIES],
        "reports": _find_reports(receiver[:253].lower()),
        "may_change": request.user.has_perm(CHANGE),
    }
    return TemplateResponse(request, "dashboard/staff/receivers.html", page)


def _find_reports(domain: str) -> list[TlsReport]:
    """Return the newest TLS reports with their state, those with failed sessions first."""
    reports = TlsReport.objects.with_state().filter(domain__contains=domain).select_related("mail")
    return list(reports.order_by("-day", "-failures", "domain")[:MAX_REPORTS])


def suspend_page(request: HttpRequest, context: dict[str, Any], number: int) -> HttpResponse:
    """Ask before sending to a receiver is suspended, then suspend it."""
    lead = gettext(
        "No further email leaves for this receiver from this source until you release it. Email for it waits, and "
        "fails when it is older than DELIVERY_MAX_AGE."
    )
    done = gettext("Sending is suspended.")
    return _confirmed(request, context, number, title=gettext("Suspend"), lead=lead, act=suspend_pair, done=done)


def release_page(request: HttpRequest, context: dict[str, Any], number: int) -> HttpResponse:
    """Ask before a receiver is released, then release it."""
    lead = gettext(
        "A suspension ends and the learnt rate is forgotten, so that Postrider learns it anew. A rate that is set by "
        "the staff stays."
    )
    done = gettext("Email is sent again, and the rate is learnt anew.")
    return _confirmed(request, context, number, title=gettext("Release"), lead=lead, act=release_pair, done=done)


def pin_page(request: HttpRequest, context: dict[str, Any], number: int) -> HttpResponse:
    """Show the form of the rate, and set it."""
    refuse_without(request, CHANGE)
    pair = get_object_or_404(ReceiverPace, id=number)
    form = PinnedRateForm(request.POST or None, initial={"per_minute": pair.pinned and round(pair.pinned)})
    if request.method == "POST" and form.is_valid():
        per_minute = form.cleaned_data["per_minute"]
        unpin_rate(pair) if per_minute is None else pin_rate(pair, per_minute=per_minute)
        messages.success(request, gettext("The rate has been changed."))
        return redirect("admin:receivers")
    page = {
        **context,
        "title": _title(gettext("Set a rate"), pair),
        "form": form,
        "back_url": reverse("admin:receivers"),
    }
    return TemplateResponse(request, "dashboard/staff/receiver_rate.html", page)


def _confirmed(
    request: HttpRequest,
    context: dict[str, Any],
    number: int,
    *,
    title: str,
    lead: str,
    act: Callable[[ReceiverPace], None],
    done: str,
) -> HttpResponse:
    refuse_without(request, CHANGE)
    pair, back = get_object_or_404(ReceiverPace, id=number), reverse("admin:receivers")
    if request.method == "POST":
        act(pair)
        messages.success(request, done)
        return redirect(back)
    confirmation = Confirmation(lead, title, back, about=_name(pair), is_danger=act is suspend_pair)
    page = {**context, "title": _title(title, pair), "confirmation": confirmation}
    return TemplateResponse(request, "dashboard/confirm.html", page)


def _name(pair: ReceiverPace) -> str:
    return f"{pair.receiver} ({pair.source})" if pair.source else pair.receiver


def _title(action: str, pair: ReceiverPace) -> str:
    return f"{action}: {pair.receiver}"
