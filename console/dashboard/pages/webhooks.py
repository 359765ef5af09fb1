"""Webhook endpoints: list, create, edit, test, rotate secrets, and their deliveries."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern
from django.utils import timezone
from django.utils.formats import date_format, number_format
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from console.dashboard.auth.current_workspace import current_workspace
from console.dashboard.pages.deliveries import add_texts, describe_error, find_deliveries, retry_progress
from console.dashboard.ui.charts import Chart, ChartKind, ChartSeries
from console.dashboard.ui.confirm import Confirmation, try_action
from console.dashboard.ui.forms import ApiForm, LocalDateTimeField, in_time_zone
from console.dashboard.ui.labels import DELIVERY_TONES
from console.dashboard.ui.listing import ListPage
from console.dashboard.ui.refresh import refresh_of
from console.dashboard.ui.scoping import ScopedAdmin
from console.dashboard.ui.streams import streams_of
from console.documentation.page_samples import read_samples
from core.lib.coded_texts import CodedText
from core.lib.translation import translate
from events.kinds import WEBHOOK_KINDS
from streams.models import Stream
from webhooks.formats import STANDARD, find_format, format_choices
from webhooks.headers import MASK
from webhooks.health import (
    COUNTED,
    NEWEST,
    DeliveryHistory,
    DeliveryOutcomes,
    read_health,
    read_histories,
    read_outcomes,
)
from webhooks.models import Webhook, WebhookDelivery, WebhookDeliveryStatus
from webhooks.serializers import WebhookInput
from webhooks.services import (
    ENDED_STATUSES,
    REPLAY_AT_ONCE,
    create_webhook,
    delete_webhook,
    replay_failed,
    replay_since,
    rotate_secret,
    send_test,
    update_webhook,
)

# The events of the form by what they are about.
EVENT_GROUPS: dict[str | Promise, dict[str, str | Promise]] = {
    gettext_lazy("Delivery"): {
        "sent": gettext_lazy("Sent: accepted by the receiving server"),
        "delivered": gettext_lazy("Delivered"),
        "bounced": gettext_lazy("Bounced permanently"),
        "failed": gettext_lazy("Failed after all attempts"),
        "deferred": gettext_lazy("Deferred: another attempt will follow"),
        "scheduled": gettext_lazy("Scheduled for later"),
        "suppressed": gettext_lazy("Not sent: the address is suppressed"),
        "held": gettext_lazy("Waits for approval"),
        "approved": gettext_lazy("Approved by a person or a key"),
        "rejected": gettext_lazy("Rejected by a person or a key"),
    },
    gettext_lazy("Recipients"): {
        "opened": gettext_lazy("Opened"),
        "clicked": gettext_lazy("Clicked a link"),
        "unsubscribed": gettext_lazy("Unsubscribed"),
        "complained": gettext_lazy("Reported as spam"),
        "replied": gettext_lazy("A recipient answered"),
    },
    gettext_lazy("Receiving"): {"received": gettext_lazy("An email was received")},
    gettext_lazy("Workspace"): {
        "domain.verified": gettext_lazy("A domain was verified"),
        "domain.failed": gettext_lazy("The verification of a domain failed"),
        "domain.auth_failing": gettext_lazy("Email of a domain fails DMARC"),
        "domain.spoofed": gettext_lazy("Others send much email in the name of a domain"),
        "domain.replay": gettext_lazy("More signed email of a domain is reported than was sent"),
        "suppression.added": gettext_lazy("A suppression was added"),
        "suppression.removed": gettext_lazy("A suppression was removed"),
        "alert.triggered": gettext_lazy("An alert began"),
        "alert.resolved": gettext_lazy("An alert ended"),
    },
}
# Status → the name and the color of its series.
SERIES: dict[str, tuple[str | Promise, str]] = {
    WebhookDeliveryStatus.SUCCEEDED: (gettext_lazy("Succeeded"), "--pr-success"),
    WebhookDeliveryStatus.EXHAUSTED: (gettext_lazy("Failed"), "--pr-danger"),
    WebhookDeliveryStatus.PENDING: (gettext_lazy("Waiting"), "--pr-warning"),
    WebhookDeliveryStatus.DISCARDED: (gettext_lazy("Discarded"), "--pr-muted"),
}


def _grouped_checkboxes() -> UnfoldAdminCheckboxSelectMultipleWidget:
    """Return checkboxes in groups, with a button that checks all of a group, and one for all groups."""
    # No subclass: unfold's template of a field knows this one by its name.
    widget = UnfoldAdminCheckboxSelectMultipleWidget()
    widget.template_name = "dashboard/parts/grouped_choices.html"
    return widget


class WebhookForm(ApiForm):
    serializer = WebhookInput
    wire_names = {"url": "url", "events": "events", "streams": "streams", "format": "format", "headers": "headers"}

    url = forms.CharField(
        label="URL",
        max_length=2048,
        strip=False,
        widget=UnfoldAdminTextInputWidget(
            {"type": "url", "autocomplete": "off", "placeholder": "https://shop.example/hooks/mail"}
        ),
        help_text=gettext_lazy("Events are sent to this URL in signed POST requests."),
    )
    events = forms.MultipleChoiceField(
        label=gettext_lazy("Events"),
        choices=[(title, list(kinds.items())) for title, kinds in EVENT_GROUPS.items()],
        widget=_grouped_checkboxes(),
    )
    streams = forms.MultipleChoiceField(
        label=gettext_lazy("Streams"),
        required=False,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text=gettext_lazy("Only events about emails of these streams. Without a choice, of all streams."),
    )
    format = forms.ChoiceField(
        label=gettext_lazy("Format"),
        choices=format_choices,
        initial=STANDARD,
        required=False,
        widget=UnfoldAdminSelectWidget,
        help_text=gettext_lazy("Choose another service's format if your endpoint was built for it."),
    )

    headers = forms.CharField(
        label=gettext_lazy("Headers"),
        required=False,
        widget=UnfoldAdminTextareaWidget({"rows": 3, "placeholder": "Authorization: Bearer …", "autocomplete": "off"}),
        help_text=gettext_lazy(
            "Sent with each request, one per line. Values are not shown again; a line with asterisks keeps its value."
        ),
    )

    def __init__(self, data: Any, *, streams: Sequence[Stream], **options: Any) -> None:
        super().__init__(data, **options)
        if streams:
            self.fields["streams"].choices = [(stream.slug, stream.name) for stream in streams]  # type: ignore[attr-defined]
        else:
            del self.fields["streams"]

    def clean_headers(self) -> dict[str, str]:
        lines = [line.partition(":") for line in self.cleaned_data["headers"].splitlines() if line.strip()]
        headers = [(name.strip(), value.strip()) for name, _colon, value in lines]
        names = [name.lower() for name, _ in headers if name]
        if len(set(names)) < len(names):
            raise forms.ValidationError(translate(CodedText("webhooks.header_repeated")))
        return dict(headers)

    def clean_format(self) -> str:
        return self.cleaned_data["format"] or STANDARD


class ReplayForm(forms.Form):
    since = LocalDateTimeField(
        label=gettext_lazy("Since"),
        help_text=in_time_zone(gettext_lazy("The time of the events, in the time zone %(zone)s.")),
    )
    which = forms.ChoiceField(
        label=gettext_lazy("Events"),
        choices=[
            ("failed", gettext_lazy("Events whose delivery failed or was discarded")),
            ("all", gettext_lazy("All events, including those that your endpoint has accepted")),
        ],
        widget=UnfoldAdminSelectWidget,
    )

    def clean_since(self) -> datetime:
        since: datetime = self.cleaned_data["since"]
        if since > timezone.now():
            raise forms.ValidationError(_("Choose a time in the past."))
        return since

    @property
    def statuses(self) -> Sequence[WebhookDeliveryStatus]:
        failed = (WebhookDeliveryStatus.EXHAUSTED, WebhookDeliveryStatus.DISCARDED)
        return ENDED_STATUSES if self.cleaned_data["which"] == "all" else failed


class WebhookSection(ScopedAdmin):
    slug, title = "webhooks", gettext_lazy("Webhooks")
    found_by = ("webhook", "url")
    empty = (
        "webhook",
        gettext_lazy("No webhooks yet"),
        gettext_lazy("Get notified at your own URL when an email is delivered, bounces or is opened."),
    )

    def routes(self) -> list[URLPattern]:
        return [
            self.route("add/", "add", self.add_view),
            self.route("<str:object_id>/", "change", self.detail_view),
            self.route("<str:object_id>/edit/", "edit", self.edit_view),
            self.post_route("<str:object_id>/test/", "test", self.test_view),
            self.route("<str:object_id>/resend/", "resend", self.resend_failed_view),
            self.route("<str:object_id>/since/", "since", self.replay_since_view),
            self.post_route("<str:object_id>/enable/", "enable", self.enable_view),
            self.route("<str:object_id>/disable/", "disable", self.disable_view),
            self.route("<str:object_id>/rotate/", "rotate", self.rotate_view),
            self.route("<str:object_id>/delete/", "delete", self.remove_view),
        ]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        # At most 20 per workspace, so no pagination.
        webhooks = list(self.get_queryset(request))
        histories = read_histories(webhooks)
        rows = [(webhook, histories.get(webhook.id, DeliveryHistory())) for webhook in webhooks]
        return self.page(
            request,
            "dashboard/webhooks/list.html",
            title=self.title,
            webhooks=rows,
            newest=NEWEST,
            all_kinds=len(WEBHOOK_KINDS),
        )

    def add_view(self, request: HttpRequest, *_args: Any, **_named: Any) -> HttpResponse:
        initial = {"events": ["delivered", "bounced", "failed"]}
        form = WebhookForm(request.POST or None, streams=streams_of(request), initial=initial)
        workspace = current_workspace(request)
        created = form.attempt(lambda: create_webhook(workspace, **form.values)) if form.is_valid() else None
        if created is None:
            return self.page(request, "dashboard/webhooks/new.html", title=_("Create webhook"), form=form)
        webhook, secret = created
        self.log_addition(request, webhook, "Created.")
        return self._secret_page(request, webhook, secret)

    def detail_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        webhook = self.find(request, object_id)
        listing = _deliveries(request, webhook)
        shown = [(delivery.id, delivery.status, delivery.attempt_count) for delivery in listing.rows]
        refresh = refresh_of(
            webhook.active, webhook.failing_since, shown, regions=("state", "outcomes", "outcome-rows", "deliveries")
        )
        return refresh.unchanged(request) or self.page(
            request,
            "dashboard/webhooks/detail.html",
            title=webhook.url,
            webhook=webhook,
            # A search reads many payloads.
            refresh=None if request.GET.get("search") else refresh,
            listing=listing,
            health=read_health(webhook),
            outcomes=(outcomes := read_outcomes(webhook)),
            chart=outcome_chart(outcomes),
            counted=COUNTED,
            format=find_format(webhook.format).label,
            former_secret=webhook.secrets.valid().exclude(expires_at=None).first(),
            all_kinds=len(WEBHOOK_KINDS),
            streams=[stream for stream in streams_of(request) if stream.slug in webhook.streams],
            headers=list(webhook.readable_headers),
            statuses=WebhookDeliveryStatus.values,
            kinds=webhook.events,
            query={name: request.GET.get(name, "") for name in ("status", "event", "search")},
            tones=DELIVERY_TONES,
            urls={
                name: self.url(name, webhook.id)
                for name in ("edit", "test", "resend", "since", "enable", "disable", "rotate", "delete")
            },
        )

    def edit_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        webhook = self.find(request, object_id)
        shown = [f"{name}: {MASK}" for name in webhook.readable_headers]
        initial = {name: getattr(webhook, name) for name in ("url", "events", "streams", "format")}
        initial["headers"] = "\n".join(shown)
        form = WebhookForm(request.POST or None, streams=streams_of(request), initial=initial)
        changed = form.attempt(lambda: update_webhook(webhook, changes=form.values)) if form.is_valid() else None
        if changed is None:
            return self.page(request, "dashboard/webhooks/edit.html", title=_("Edit webhook"), form=form)
        self.log_change(request, webhook, "Changed.")
        messages.success(request, _("The webhook was saved."))
        return redirect(self.url("change", webhook.id))

    def test_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        webhook = self.find(request, object_id)
        if try_action(request, lambda: send_test(webhook)):
            messages.success(request, _("Test event queued. Its delivery is at the top of the list."))
        return redirect(self.url("change", webhook.id))

    def resend_failed_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        webhook = self.find(request, object_id)
        if request.method != "POST":
            lead = _("Every event whose attempts have all failed will be sent again, the oldest %(count)s first.")
            confirmation = Confirmation(
                lead % {"count": number_format(REPLAY_AT_ONCE, force_grouping=True)},
                _("Replay"),
                self.url("change", webhook.id),
                about=webhook.url,
            )
            return self.confirm(request, _("Replay failed events"), confirmation)
        count = replay_failed(webhook)
        text = ngettext("%(count)s event will be sent again.", "%(count)s events will be sent again.", count)
        messages.success(request, text % {"count": count})
        return redirect(self.url("change", webhook.id))

    def replay_since_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        webhook = self.find(request, object_id)
        form = ReplayForm(request.POST or None, initial={"since": timezone.now() - timedelta(hours=1)})
        if not form.is_valid():
            lead = _("Events are sent again with the same ids and payloads, the oldest %(count)s first.")
            lead %= {"count": number_format(REPLAY_AT_ONCE, force_grouping=True)}
            page = {"form": form, "lead": lead, "back_url": self.url("change", webhook.id)}
            return self.page(request, "dashboard/webhooks/replay.html", title=_("Replay since"), **page)
        count, newest_at = replay_since(webhook, since=form.cleaned_data["since"], statuses=form.statuses)
        text = ngettext("%(count)s event will be sent again.", "%(count)s events will be sent again.", count)
        messages.success(request, text % {"count": number_format(count, force_grouping=True)})
        if count == REPLAY_AT_ONCE and newest_at:
            at = date_format(timezone.localtime(newest_at), "DATETIME_FORMAT")
            messages.info(request, _("There may be more: replay since %(at)s for the rest.") % {"at": at})
        return redirect(self.url("change", webhook.id))

    def enable_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        return self._set_active(request, object_id, active=True, done=_("The webhook was enabled."))

    def disable_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        if request.method == "POST":
            return self._set_active(request, object_id, active=False, done=_("The webhook was disabled."))
        webhook = self.find(request, object_id)
        lead = _(
            "No more events will be sent to this URL, and pending deliveries will be discarded. Events that occur "
            "while the webhook is disabled are not sent later."
        )
        confirmation = Confirmation(
            lead, _("Disable"), self.url("change", webhook.id), about=webhook.url, is_danger=True
        )
        return self.confirm(request, _("Disable webhook"), confirmation)

    def rotate_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        webhook = self.find(request, object_id)
        if request.method != "POST":
            lead = _("The new secret is shown only once. For 24 hours, events are signed with both secrets.")
            confirmation = Confirmation(lead, _("Rotate secret"), self.url("change", webhook.id), about=webhook.url)
            return self.confirm(request, _("Rotate secret"), confirmation)
        secret = rotate_secret(webhook)
        self.log_change(request, webhook, "Rotated the secret.")
        return self._secret_page(request, webhook, secret)

    def remove_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        webhook = self.find(request, object_id)
        if request.method != "POST":
            lead = _("No more events will be sent to this URL, and its delivery log will be deleted.")
            confirmation = Confirmation(
                lead, _("Delete webhook"), self.url("change", webhook.id), webhook.url, is_danger=True
            )
            return self.confirm(request, _("Delete webhook"), confirmation)
        if try_action(request, lambda: delete_webhook(webhook)):
            messages.success(request, _("The webhook was deleted."))
        return redirect(self.list_url)

    def _set_active(self, request: HttpRequest, object_id: str, *, active: bool, done: str) -> HttpResponse:
        webhook = self.find(request, object_id)
        if try_action(request, lambda: update_webhook(webhook, changes={"active": active})):
            self.log_change(request, webhook, "Enabled." if active else "Disabled.")
            messages.success(request, done)
        return redirect(self.url("change", webhook.id))

    def _secret_page(self, request: HttpRequest, webhook: Webhook, secret: str) -> HttpResponse:
        # The secret appears in this response only: never in a session, message or log.
        next_url = self.url("change", webhook.id)
        return self.page(
            request,
            "dashboard/webhooks/secret.html",
            title=webhook.url,
            secret=secret,
            next_url=next_url,
            samples=read_samples("webhooks", section="Verify signatures"),
        )


def outcome_chart(outcomes: DeliveryOutcomes) -> Chart:
    """Return the chart of the deliveries by their status, without a status that none of them has."""
    form = "MONTH_DAY_FORMAT" if outcomes.by_day else "H:i"
    series = [
        ChartSeries(str(name), [counts[status] for counts in outcomes.counts.values()], color)
        for status, (name, color) in SERIES.items()
    ]
    shown = [one for one in series if any(one.values)] or series[:1]
    running = _("Today, so far") if outcomes.by_day else _("This hour, so far")
    return Chart(
        ChartKind.STACKED_BARS, [date_format(start, form) for start in outcomes.counts], shown, running=running
    )


def _deliveries(request: HttpRequest, webhook: Webhook) -> ListPage:
    """Return a page of the webhook's deliveries, without the responses, which may have 4 kB per attempt."""
    rows = add_texts(WebhookDelivery.objects.filter(webhook=webhook).select_related("pending").defer("attempts"))
    listing = find_deliveries(request, webhook, rows)
    for delivery in listing.rows:
        delivery.progress, delivery.error_message = retry_progress(delivery), describe_error(delivery.error)
    return listing
