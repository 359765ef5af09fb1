"""Selection of the overview: all emails, or those of one stream, domain, template or tag."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest
from django.utils.translation import gettext as _

from analytics.outcomes import DayOutcomes, read_outcomes, read_stream_outcomes
from console.dashboard.pages.emails.search import suggest_tags
from console.dashboard.ui.streams import selected_stream
from core.counters.slices import Dimension, slice_id
from core.workspaces.models import Workspace
from emails.models import Email
from templates_app.models import Template

MAX_OPTIONS = 100
MAX_VALUE_LENGTH = 255
# Streams have a switch of their own.
DIMENSIONS = (Dimension.DOMAIN, Dimension.TEMPLATE, Dimension.TAG)

Option = tuple[str, str]


@dataclass(frozen=True)
class OptionGroup:
    """The options of one dimension, as (value of the parameter, name)."""

    label: str
    options: list[Option]


@dataclass(frozen=True)
class Selection:
    """The selected emails.

    value: the parameter, `dimension:value`; empty for all emails.
    slice_: None for all emails, and for a stream.
    """

    value: str
    slice_: UUID | None
    groups: list[OptionGroup]

    @property
    def name(self) -> str:
        """The name of the selected option; empty for all emails."""
        return next((name for group in self.groups for value, name in group.options if value == self.value), "")

    @property
    def list_filter(self) -> str:
        """The filter of its emails in the list, as a query string; the senders of a domain are found by its name."""
        dimension, _colon, value = self.value.partition(":")
        filters = {"tag": {"tag": value}, "template": {"template": value}, "domain": {"sender": f"@{value}"}}
        return urlencode(filters.get(dimension, {}))


def read_selected_outcomes(
    request: HttpRequest, workspace: Workspace, selection: Selection, *, first: date, last: date
) -> list[DayOutcomes]:
    """Return the outcomes of the selection, or of the stream that the switch has selected."""
    if selection.slice_ is None and (stream := selected_stream(request)):
        return read_stream_outcomes(workspace, stream.slug, first=first, last=last)
    return read_outcomes(workspace, first=first, last=last, slice_=selection.slice_)


def read_selection(request: HttpRequest, workspace: Workspace) -> Selection:
    """Return the selection of a request; all emails if it is missing or invalid."""
    dimension, _colon, value = request.GET.get("show", "").partition(":")
    if dimension not in DIMENSIONS or not 0 < len(value) <= MAX_VALUE_LENGTH:
        return Selection("", None, _groups(workspace, "", ""))
    selected = Dimension(dimension)
    groups = _groups(workspace, selected, value)
    return Selection(f"{dimension}:{value}", slice_id(workspace.id, selected, value), groups)


def _groups(workspace: Workspace, selected: str, value: str) -> list[OptionGroup]:
    """Return the options, with the selected value even if it is not among the newest."""
    newest = Email.objects.filter(workspace=workspace).order_by("-created_at", "-id")
    templates = Template.objects.sendable().filter(workspace=workspace).values_list("id", "name")[:MAX_OPTIONS]
    domains = workspace.domains.order_by("name").values_list("name", flat=True)[:MAX_OPTIONS]
    choices: dict[Dimension, tuple[str, dict[str, str]]] = {
        Dimension.DOMAIN: (_("Domain"), _by_name(domains)),
        Dimension.TEMPLATE: (_("Template"), dict(templates)),
        Dimension.TAG: (_("Tag"), _by_name(suggest_tags(newest))),
    }
    for dimension, (_label, options) in choices.items():
        if dimension == selected:
            options.setdefault(value, value)
    return [
        OptionGroup(label, [(f"{dimension}:{key}", name) for key, name in options.items()])
        for dimension, (label, options) in choices.items()
    ]


def _by_name(names: Iterable[str]) -> dict[str, str]:
    return {name: name for name in names}
