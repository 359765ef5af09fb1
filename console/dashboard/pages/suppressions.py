"""Suppressions: list, add, import, export and remove addresses (docs/decisions/0052)."""

from collections.abc import Iterator, Sequence
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import redirect
from django.urls import URLPattern, reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget

from console.dashboard.auth.current_workspace import current_workspace
from console.dashboard.pages.suppression_files import AddressFile, UnreadableFile, read_addresses
from console.dashboard.ui.confirm import Confirmation, try_action
from console.dashboard.ui.csv_files import csv_response
from console.dashboard.ui.forms import ApiForm
from console.dashboard.ui.labels import SUPPRESSION_TONES
from console.dashboard.ui.listing import PER_PAGE, list_page
from console.dashboard.ui.scoping import ScopedAdmin
from console.dashboard.ui.streams import own_streams, selected_stream, streams_of, suppression_stream
from core.lib.datetimes import format_datetime
from core.lib.ids import InvalidId
from core.workspaces.models import Workspace
from streams.models import Stream
from suppressions.filters import MAX_SEARCH_LENGTH
from suppressions.models import Suppression, SuppressionQuerySet
from suppressions.serializers import MAX_ADDRESSES, SuppressionInput
from suppressions.services import delete_suppression, delete_suppressions, suppress_manually

REMOVAL = gettext_lazy(
    "Emails to a removed address will be sent again. Remove it only if the recipient wants your emails."
)
PAGE_ROWS = 1_000


class _StreamForm(forms.Form):
    """A form with the field `stream` if the workspace has streams with suppressions of their own."""

    def __init__(self, *args: Any, streams: Sequence[Stream], **options: Any) -> None:
        super().__init__(*args, **options)
        if streams:
            self.fields["stream"] = forms.ChoiceField(
                label=_("Block"),
                choices=[("", _("All streams")), *((stream.slug, stream.name) for stream in streams)],
                required=False,
                widget=UnfoldAdminSelectWidget,
                help_text=_("Unsubscribes from one stream do not stop the others."),
            )


class AddressesForm(_StreamForm, ApiForm):
    serializer, wire_names = SuppressionInput, {"addresses": "emails", "stream": "stream"}

    addresses = forms.CharField(
        label=gettext_lazy("Addresses"),
        max_length=300_000,
        widget=UnfoldAdminTextareaWidget(
            {"rows": 6, "autofocus": True, "placeholder": "ada@example.com\nbo@example.com"}
        ),
        help_text=gettext_lazy("One address per line, up to 1,000."),
    )

    def request_body(self, cleaned: dict[str, Any]) -> dict[str, Any]:
        lines = (line.strip(" ,;\t") for line in cleaned["addresses"].splitlines())
        return {"emails": [line for line in lines if line], "stream": cleaned.get("stream") or None}


class ImportForm(_StreamForm):
    file = forms.FileField(
        label=gettext_lazy("File"),
        widget=forms.FileInput({"accept": ".csv,.txt,text/csv,text/plain", "class": "pr-file"}),
        help_text=gettext_lazy(
            "A CSV file with an email column, or one address per line. Up to 10,000 rows and 1 MiB."
        ),
    )

    def clean_file(self) -> AddressFile:
        try:
            return read_addresses(self.cleaned_data["file"].read())
        except UnreadableFile as error:
            raise forms.ValidationError(str(error)) from error


class SuppressionSection(ScopedAdmin):
    slug, title = "suppressions", gettext_lazy("Suppressions")
    empty = (
        "block",
        gettext_lazy("No suppressions"),
        gettext_lazy("Addresses that bounce, complain or unsubscribe are added automatically."),
    )
    add_label = gettext_lazy("Add addresses")

    def routes(self) -> list[URLPattern]:
        return [
            self.route("add/", "add", self.add_view),
            self.route("import/", "import", self.import_view),
            self.route("export/", "export", self.export_view),
            self.post_route("remove/", "remove", self.remove_selected_view),
            self.route("<str:object_id>/delete/", "delete", self.remove_view),
        ]

    def changelist_view(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        reason, search = request.GET.get("reason", ""), request.GET.get("search", "")[:MAX_SEARCH_LENGTH]
        rows = Suppression.objects.filter(workspace=current_workspace(request)).order_by(*self.ordering)
        if stream := selected_stream(request):
            rows = rows.filter(stream=suppression_stream(stream))
        return self.page(
            request,
            "dashboard/suppressions/list.html",
            title=self.title,
            listing=list_page(request, rows.matching(reason=reason, search=search.replace("\0", ""))),
            reasons=Suppression.Reason.values,
            query={"reason": reason, "search": search},
            tones=SUPPRESSION_TONES,
            streams=streams_of(request),
            stream=stream,
            stream_names=_names(request),
            new_stream_url=reverse("dashboard:streams_stream_add"),
            urls={name: self.url(name) for name in ("add", "import", "export", "remove")},
            emails_url=reverse("dashboard:emails_email_changelist"),
        )

    def add_view(self, request: HttpRequest, *_args: Any, **_named: Any) -> HttpResponse:
        # The page of a recipient links this form with its address.
        initial = {"addresses": request.GET.get("address", "")}
        form = AddressesForm(request.POST or None, initial=initial, streams=own_streams(request))
        if not form.is_valid():
            lead = _("Emails to these addresses, including queued emails, will not be sent.")
            return self.page(request, "dashboard/suppressions/new.html", title=self.add_label, form=form, lead=lead)
        self._suppress(request, form.values.addresses, stream=form.values.stream)
        return redirect(self.list_url)

    def import_view(self, request: HttpRequest) -> HttpResponse:
        form = ImportForm(request.POST or None, request.FILES or None, streams=own_streams(request))
        if not form.is_valid():
            return self.page(request, "dashboard/suppressions/import.html", title=_("Import suppressions"), form=form)
        file: AddressFile = form.cleaned_data["file"]
        self._suppress(request, file.addresses, stream=form.cleaned_data.get("stream", ""))
        if not file.error_count:
            return redirect(self.list_url)
        return self.page(request, "dashboard/suppressions/imported.html", title=_("Import suppressions"), file=file)

    def export_view(self, request: HttpRequest) -> HttpResponseBase:
        suppressions = Suppression.objects.filter(workspace=current_workspace(request)).order_by("-created_at", "-id")
        if stream := selected_stream(request):
            suppressions = suppressions.filter(stream=suppression_stream(stream))
        # The column of the stream comes last, and only if there are streams.
        columns = ("email", "reason", "createdAt", "stream")[: 4 if streams_of(request) else 3]
        rows = (
            (row.email, row.reason, format_datetime(row.created_at), row.stream)[: len(columns)]
            for row in _newest_first(suppressions)
        )
        return csv_response(request, "suppressions.csv", columns=columns, rows=rows)

    def remove_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        suppression = self.find(request, object_id)
        if request.method != "POST":
            about = _describe(suppression, _names(request))
            confirmation = Confirmation(REMOVAL, _("Remove"), self.list_url, about, is_danger=True)
            return self.confirm(request, _("Remove suppression"), confirmation)
        if try_action(request, lambda: delete_suppression(suppression)):
            messages.success(request, _("%(address)s was removed.") % {"address": suppression.email})
        return redirect(self.list_url)

    def remove_selected_view(self, request: HttpRequest) -> HttpResponse:
        """Ask for a confirmation that posts the same selection again, then remove the selected addresses."""
        selected = self._selected(request)
        if "confirmed" not in request.POST and selected:
            names = _names(request)
            about = ", ".join(_describe(suppression, names) for suppression in selected)
            confirmation = Confirmation(REMOVAL, _("Remove"), self.list_url, about, is_danger=True)
            hidden = [("confirmed", "1"), *(("selected", suppression.id) for suppression in selected)]
            return self.confirm(request, _("Remove suppressions"), confirmation, hidden=hidden)
        for stream in {suppression.stream for suppression in selected}:
            addresses = [suppression.email for suppression in selected if suppression.stream == stream]
            delete_suppressions(current_workspace(request), addresses=addresses, stream=stream)
        text = ngettext("%(count)s address was removed.", "%(count)s addresses were removed.", len(selected))
        messages.success(request, text % {"count": len(selected)})
        return redirect(self.list_url)

    def _selected(self, request: HttpRequest) -> list[Suppression]:
        """Return the selected rows of the workspace, at most PER_PAGE. Raises Http404 for an invalid id."""
        ids = request.POST.getlist("selected")[:PER_PAGE]
        try:
            return list(self.get_queryset(request).filter(id__in=ids))
        except InvalidId as error:
            raise Http404 from error

    def _suppress(self, request: HttpRequest, addresses: tuple[str, ...], *, stream: str) -> None:
        new = suppress_all(current_workspace(request), addresses, stream=stream)
        values = {"new": new, "known": len(addresses) - new}
        messages.success(request, _("%(new)s added, %(known)s already suppressed.") % values)


def _names(request: HttpRequest) -> dict[str, str]:
    """Return the names of streams by their value in suppressions; none if the workspace has only `main`."""
    names = {stream.slug: stream.name for stream in own_streams(request)}
    return {"": _("All streams"), **names} if names else {}


def _describe(suppression: Suppression, names: dict[str, str]) -> str:
    name = names.get(suppression.stream)
    return f"{suppression.email} ({name})" if name else suppression.email


def suppress_all(workspace: Workspace, addresses: tuple[str, ...], *, stream: str) -> int:
    """Suppress any number of addresses in batches of MAX_ADDRESSES; return the number of new suppressions.

    stream: the only one to block; empty for all.
    """
    chunks = (addresses[start : start + MAX_ADDRESSES] for start in range(0, len(addresses), MAX_ADDRESSES))
    results = (result for chunk in chunks for result in suppress_manually(workspace, addresses=chunk, stream=stream))
    return len({suppression.id for suppression, is_new in results if is_new})


def _newest_first(suppressions: SuppressionQuerySet) -> Iterator[Suppression]:
    page = list(suppressions[:PAGE_ROWS])
    while page:
        yield from page
        last = page[-1]
        older = Q(created_at__lt=last.created_at) | Q(created_at=last.created_at, id__lt=last.id)
        page = list(suppressions.filter(older, created_at__lte=last.created_at)[:PAGE_ROWS])
