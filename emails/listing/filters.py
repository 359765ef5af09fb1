"""Filters of the email list and the export (docs/specification.md, Lists and export; docs/decisions/0086)."""

from collections.abc import Sequence
from typing import Any, ClassVar

from django.db.models import Exists, OuterRef, QuerySet
from django_filters import BaseInFilter, FilterSet
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from core.api.fields import DateTimeBoundField, OptionField
from core.api.filters import FieldFilter, RangeForm, RepeatedInput
from core.api.suggestions import MAX_NAME_LENGTH, suggest_event
from core.lib.email_addresses import normalize_search
from emails.listing.search import filter_by_id, filter_by_text
from emails.models import HELD, TAGGED, Email
from emails.states import EmailStatus
from events.kinds import TYPE_PREFIX, EventKind
from events.models import Event

MAX_SEARCH_LENGTH = 200


class NamesField(serializers.CharField):
    """Names of a fixed set, separated by commas."""

    known: ClassVar[Sequence[str]]
    default_error_messages = {"unknown": "Unknown name {name!r}.{hint} Use one of: {known}."}

    def to_internal_value(self, data: Any) -> Any:
        names = [name.strip().removeprefix(TYPE_PREFIX) for name in super().to_internal_value(data).split(",")]
        for name in names:
            if name not in self.known:
                hint, known = suggest_event(name, self.known), ", ".join(self.known)
                self.fail("unknown", name=name[:MAX_NAME_LENGTH], hint=hint, known=known)
        return names


@extend_schema_field({"type": "string", "enum": EmailStatus.values})
class StatusesField(NamesField):
    known = EmailStatus.values


@extend_schema_field({"type": "string", "enum": EventKind.values})
class EventsField(NamesField):
    known = EventKind.values


class InclusiveEndField(DateTimeBoundField):
    """The end of a range, to the last microsecond: responses show createdAt truncated to milliseconds."""

    def to_internal_value(self, data: Any) -> Any:
        end = super().to_internal_value(data)
        return end.replace(microsecond=end.microsecond // 1000 * 1000 + 999)


class StatusFilter(BaseInFilter, FieldFilter):
    """The lookup `in`, with the parameter described as a list."""

    widget = RepeatedInput


class EventFilter(StatusFilter):
    """Emails with at least one of the events. The index of rare events makes the usual filters fast."""

    def filter(self, qs: QuerySet[Email], value: Any) -> QuerySet[Email]:
        return filter_by_event(qs, value) if value else qs


class _ProbedExists(Exists):
    """An EXISTS that PostgreSQL evaluates row by row: it does not turn one with an OFFSET into a join."""

    template = "EXISTS(%(subquery)s OFFSET 0)"


def filter_by_event(emails: QuerySet[Email], kinds: Sequence[str]) -> QuerySet[Email]:
    """Filter emails by their events, in the order that PostgreSQL prefers."""
    return emails.filter(Exists(_events_of_email(kinds)))


def probe_events(emails: QuerySet[Email], kinds: Sequence[str]) -> QuerySet[Email]:
    """Filter emails by their events, looked up email by email."""
    return emails.filter(_ProbedExists(_events_of_email(kinds)))


def _events_of_email(kinds: Sequence[str]) -> QuerySet[Event]:
    return Event.objects.filter(email=OuterRef("pk"), kind__in=kinds)


class SearchFilter(FieldFilter):
    """A literal, case-insensitive substring; or the id of an email, in either spelling."""

    def filter(self, qs: QuerySet[Email], value: Any) -> QuerySet[Email]:
        if not value:
            return qs
        named = filter_by_id(qs, value)
        return named if named.exists() else filter_by_text(qs, normalize_search(value))


class TagFilter(FieldFilter):
    def filter(self, qs: QuerySet[Email], value: Any) -> QuerySet[Email]:
        return qs.filter(TAGGED, tags__contains=[value]) if value else qs


class StreamFilter(FieldFilter):
    def filter(self, qs: QuerySet[Email], value: Any) -> QuerySet[Email]:
        return qs.filter(stream=value) if value else qs


class TestDataFilter(FieldFilter):
    def filter(self, qs: QuerySet[Email], value: Any) -> QuerySet[Email]:
        return qs.filter(is_test=value == "true") if value else qs


class HeldFilter(FieldFilter):
    def filter(self, qs: QuerySet[Email], value: Any) -> QuerySet[Email]:
        return qs.filter(HELD, finished_at=None) if value else qs


class EmailFilters(FilterSet):
    """Query parameters of the list and the export."""

    status = StatusFilter(
        StatusesField(
            allow_blank=True, help_text="One status, or several: separated by commas, or in repeated parameters."
        ),
    )
    event = EventFilter(
        EventsField(
            allow_blank=True,
            help_text="An event on the timeline of the email or of one of its recipients, such as `complained`; or "
            "several separated by commas, of which it has at least one.",
        ),
    )
    search = SearchFilter(
        serializers.CharField(
            allow_blank=True,
            max_length=MAX_SEARCH_LENGTH,
            trim_whitespace=False,
            help_text="A literal, case-insensitive substring of the recipients in `to` or of the subject; or the id "
            "of an email.",
        )
    )
    tag = TagFilter(
        serializers.CharField(allow_blank=True, max_length=255, trim_whitespace=False, help_text="A tag of the email.")
    )
    stream = StreamFilter(
        serializers.CharField(allow_blank=True, max_length=40, help_text="The id of the email's stream, or `main`.")
    )
    test = TestDataFilter(
        OptionField(["true", "false"], help_text="`true` for test emails only, `false` for live emails only.")
    )
    held = HeldFilter(OptionField(["approval"], help_text="`approval` for emails that wait for approval only."))
    locals()["from"] = FieldFilter(
        DateTimeBoundField(is_end=False, help_text="Created at or after this time, or on or after this date."),
        "created_at",
        lookup_expr="gte",
    )
    to = FieldFilter(
        InclusiveEndField(
            is_end=True,
            help_text="Created at or before this time, or on or before this date. Must not be before `from`.",
        ),
        "created_at",
        lookup_expr="lte",
    )

    class Meta:
        form = RangeForm


def filter_values(filterset: FilterSet) -> dict[str, Any]:
    """Return the values of valid filters by name, without the empty ones, which do not filter."""
    return {name: value for name, value in filterset.form.cleaned_data.items() if value}
