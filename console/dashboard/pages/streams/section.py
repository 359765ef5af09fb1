"""Streams: kinds of email with their own unsubscribes, each with its properties and rates (docs/decisions/0176)."""

from datetime import UTC, datetime, timedelta
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from analytics.outcomes import read_stream_outcomes
from analytics.reputation.rates import PERIOD_DAYS
from console.dashboard.auth.current_workspace import current_workspace
from console.dashboard.pages.overview.health import rate_items, read_verdict
from console.dashboard.pages.overview.metrics import read_metrics, read_period
from console.dashboard.pages.streams.forms import (
    APPROVALS,
    KINDS,
    SCOPES,
    TRACKING_DETAILS,
    UNSUBSCRIBES,
    StreamForm,
    new_stream_form,
)
from console.dashboard.pages.streams.purposes import PURPOSES
from console.dashboard.ui.confirm import Confirmation, try_action
from console.dashboard.ui.scoping import ScopedAdmin
from core.lib.translation import translate
from streams.counts import add_counts
from streams.models import MAIN, Stream
from streams.services import archive_stream, create_stream, get_stream, read_streams, unarchive_stream, update_stream

LISTS = ("emails_email", "suppressions_suppression")


class StreamSection(ScopedAdmin):
    slug, title = "streams", gettext_lazy("Streams")
    found_by = ("campaign", "name", "slug")
    add_label = gettext_lazy("Create stream")

    def routes(self) -> list[URLPattern]:
        return [
            self.route("add/", "add", self.add_view),
            self.route("<str:object_id>/", "change", self.detail_view),
            self.route("<str:object_id>/edit/", "edit", self.edit_view),
            self.route("<str:object_id>/archive/", "archive", self.archive_view),
            self.post_route("<str:object_id>/unarchive/", "unarchive", self.unarchive_view),
        ]

    def find(self, request: HttpRequest, object_id: str) -> Stream:
        """Return the workspace's stream. `main` has the id `main`: it has a row only after it was changed."""
        if object_id == MAIN:
            return get_stream(current_workspace(request), MAIN)
        stream: Stream = super().find(request, object_id)
        return stream

    def stream_url(self, name: str, stream: Stream) -> str:
        return self.url(name, MAIN if stream.is_main else stream.id)

    def object_url(self, instance: Stream) -> str:
        return self.stream_url("change", instance)

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        workspace = current_workspace(request)
        # At most 20 per workspace, so no pagination.
        streams = [
            {"stream": stream, "url": self.stream_url("change", stream), "kind": stream.get_kind_display()}
            for stream in add_counts(workspace, read_streams(workspace).values())
        ]
        return self.page(request, "dashboard/streams/list.html", title=self.title, streams=streams)

    def add_view(self, request: HttpRequest, *_args: Any, **_named: Any) -> HttpResponse:
        workspace, purpose = current_workspace(request), request.GET.get("purpose", "")
        form = new_stream_form(request.POST or None, purpose=purpose, workspace=workspace)
        stream = form.attempt(lambda: create_stream(workspace, **form.values)) if form.is_valid() else None
        if stream is None:
            lead = _(
                "A stream is a kind of email with its own unsubscribes: whoever unsubscribes from a newsletter still "
                "gets receipts. Emails that name no stream belong to main."
            )
            return self.page(
                request,
                "dashboard/streams/new.html",
                title=self.add_label,
                form=form,
                lead=lead,
                purposes=PURPOSES,
                purpose=purpose if purpose in PURPOSES else "",
            )
        self.log_addition(request, stream, "Created.")
        messages.success(request, _("%(name)s was created.") % {"name": stream.name})
        return redirect(self.stream_url("change", stream))

    def detail_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        workspace, stream = current_workspace(request), self.find(request, object_id)
        period, today = read_period(request), datetime.now(UTC).date()
        judged = (today - timedelta(days=PERIOD_DAYS - 1), today)
        days = read_stream_outcomes(workspace, stream.slug, first=min(period.first_read, judged[0]), last=today)
        health = rate_items([day for day in days if day.day >= judged[0]])
        return self.page(
            request,
            "dashboard/streams/detail.html",
            title=stream.name,
            stream=stream,
            paused_reason=translate(stream.pause_reason),
            facts=_facts(stream),
            **read_metrics(workspace, period=period, days=days, list_filter=f"stream={stream.slug}"),
            health=health,
            verdict=read_verdict(health),
            health_days=PERIOD_DAYS,
            urls={name: self.stream_url(name, stream) for name in ("edit", "archive", "unarchive")},
            lists={name: f"{reverse(f'dashboard:{name}_changelist')}?stream={stream.slug}" for name in LISTS},
        )

    def edit_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        workspace, stream = current_workspace(request), self.find(request, object_id)
        form = StreamForm(request.POST or None, stream=stream)
        changed = (
            form.attempt(lambda: update_stream(workspace, stream.slug, changes=form.values))
            if form.is_valid()
            else None
        )
        if changed is None:
            return self.page(request, "dashboard/streams/edit.html", title=_("Edit stream"), form=form)
        self.log_change(request, changed, "Changed.")
        messages.success(request, _("The stream was saved."))
        return redirect(self.stream_url("change", stream))

    def archive_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        workspace, stream = current_workspace(request), self.find(request, object_id)
        back = self.stream_url("change", stream)
        if request.method != "POST":
            lead = _(
                "New emails of this stream will be refused; accepted ones are sent. Its suppressions and counts stay, "
                "and it can be unarchived."
            )
            confirmation = Confirmation(lead, _("Archive"), back, about=stream.name, is_danger=True)
            return self.confirm(request, _("Archive stream"), confirmation)
        if try_action(request, lambda: archive_stream(workspace, stream.slug)):
            self.log_change(request, stream, "Archived.")
            messages.success(request, _("%(name)s was archived.") % {"name": stream.name})
        return redirect(back)

    def unarchive_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        workspace, stream = current_workspace(request), self.find(request, object_id)
        if try_action(request, lambda: unarchive_stream(workspace, stream.slug)):
            self.log_change(request, stream, "Unarchived.")
            messages.success(request, _("%(name)s accepts emails again.") % {"name": stream.name})
        return redirect(self.stream_url("change", stream))


def _facts(stream: Stream) -> list[tuple[str, Any]]:
    """Return the properties of a stream as texts, by label."""
    yes_or_no = {True: _("Yes"), False: _("No")}
    return [
        (_("Kind"), KINDS[Stream.Kind(stream.kind)]),
        (_("Unsubscribing"), UNSUBSCRIBES[Stream.Unsubscribe(stream.unsubscribe)]),
        (_("Unsubscribes and complaints block"), SCOPES[Stream.SuppressionScope(stream.scope)]),
        (
            _("Hard bounces block"),
            SCOPES[Stream.SuppressionScope.STREAM if stream.own_bounces else Stream.SuppressionScope.WORKSPACE],
        ),
        (_("Ignore unsubscribes from the workspace"), yes_or_no[stream.ignores_unsubscribes]),
        (_("Public"), yes_or_no[stream.public]),
        (_("Priority"), stream.get_priority_display()),
        (_("Track opens"), yes_or_no[stream.track_opens]),
        (_("Track clicks"), yes_or_no[stream.track_clicks]),
        (_("Detail of opens and clicks"), TRACKING_DETAILS[Stream.TrackingDetail(stream.tracking_detail)]),
        *([(_("Keep the content for (hours)"), hours)] if (hours := stream.content_retention) is not None else []),
        *([(_("Sensitive"), yes_or_no[True])] if stream.sensitive else []),
        *([(_("Send within (seconds)"), stream.deliver_within)] if stream.deliver_within else []),
        *([(_("Approval"), APPROVALS[stream.approval])] if stream.approval else []),
        *([(_("Route"), stream.transport_route)] if stream.transport_route else []),
    ]
