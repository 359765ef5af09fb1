"""Comparison of templates and tags: emails and the share that was delivered, opened and bounced (decision 0272)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest
from django.utils.translation import gettext as _

from analytics.outcomes import compare_slices
from console.dashboard.pages.emails.search import suggest_tags
from console.dashboard.pages.overview.health import percent_of
from console.dashboard.pages.overview.metrics import LABELS, PERIODS, STATUSES, Period, read_period
from core.counters.slices import Dimension, slice_id
from core.workspaces.models import Workspace
from emails.models import Email
from templates_app.models import Template

# Rows of each kind, so that the page costs the same for any number of templates.
MAX_COMPARED = 100
EVENTS = ("delivered", "opened", "bounced")
SORTS = ("name", "total", *EVENTS)


@dataclass(frozen=True)
class ComparedEvent:
    """The emails with an event.

    rate: percent of all emails of the row.
    query: the filter of these emails in the list.
    """

    name: str
    count: int
    rate: float | None
    query: str


@dataclass(frozen=True)
class ComparedRow:
    """A template or a tag.

    query: the filter of its emails in the list.
    show: its selection on the overview.
    """

    dimension: Dimension
    name: str
    show: str
    query: str
    total: int
    events: list[ComparedEvent]

    def sort_key(self, sort: str) -> tuple[float, int, str]:
        """Return the key of one of SORTS, by which the largest rates and totals come first."""
        if sort == "name":
            return (0, 0, self.name.casefold())
        rate = next((event.rate for event in self.events if sort == event.name), None)
        return (0 if rate is None else -rate, -self.total, self.name.casefold())


@dataclass(frozen=True)
class ComparisonColumn:
    """A heading that sorts. name: the parameter."""

    name: str
    label: str
    is_sorted: bool


@dataclass(frozen=True)
class Comparison:
    period: Period
    periods: tuple[int, ...]
    sort: str
    columns: list[ComparisonColumn]
    rows: list[ComparedRow]
    limit: int = MAX_COMPARED


def read_comparison(request: HttpRequest, workspace: Workspace) -> Comparison:
    """Return the newest templates and the tags of the newest emails, with the emails of a period."""
    period = read_period(request)
    sort = request.GET.get("sort", "")
    sort = sort if sort in SORTS else "total"
    candidates = {slice_id(workspace.id, kind, value): (kind, value, name) for kind, value, name in _values(workspace)}
    counts = compare_slices(workspace, candidates, first=period.first, last=period.last)
    rows = [_row(*values, counts.get(slice_, {}), period) for slice_, values in candidates.items()]
    labels = {"name": _("Name"), "total": str(LABELS["total"]), **{name: str(LABELS[name]) for name in EVENTS}}
    columns = [ComparisonColumn(name, label, is_sorted=name == sort) for name, label in labels.items()]
    return Comparison(period, PERIODS, sort, columns, sorted(rows, key=lambda row: row.sort_key(sort)))


def _values(workspace: Workspace) -> Iterator[tuple[Dimension, str, str]]:
    """Yield dimension, value and name of each row."""
    templates = Template.objects.sendable().filter(workspace=workspace)
    for template_id, name in templates.values_list("id", "name")[:MAX_COMPARED]:
        yield Dimension.TEMPLATE, template_id, name
    newest = Email.objects.filter(workspace=workspace).order_by("-created_at", "-id")
    for tag in suggest_tags(newest)[:MAX_COMPARED]:
        yield Dimension.TAG, tag, tag


def _row(dimension: Dimension, value: str, name: str, counts: dict[str, int], period: Period) -> ComparedRow:
    total = counts.get("total", 0)
    filters: dict[str, Any] = {str(dimension): value, "from": period.first, "to": period.last}
    events = [
        ComparedEvent(
            event,
            count := counts.get(event, 0),
            percent_of(count, total),
            urlencode({**filters, "status": STATUSES[event]}),
        )
        for event in EVENTS
    ]
    return ComparedRow(dimension, name, f"{dimension}:{value}", urlencode(filters), total, events)
