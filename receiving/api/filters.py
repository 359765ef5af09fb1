"""Filters of the lists of routes and received emails."""

from typing import Any

from django.db.models import QuerySet
from django_filters import FilterSet

from core.api.fields import DateTimeBoundField, OptionField, TextField
from core.api.filters import FieldFilter
from core.lib.email_addresses import with_a_labels
from core.lib.ids import is_id
from receiving.models import InboundRoute, ReceivedEmail
from receiving.states import ReceivedStatus

MAX_SEARCH_LENGTH = 200


def _text(help_text: str, *, max_length: int = MAX_SEARCH_LENGTH) -> TextField:
    return TextField(allow_blank=True, max_length=max_length, help_text=help_text)


class SubstringFilter(FieldFilter):
    """A literal substring, ignoring case."""

    def filter(self, qs: QuerySet[ReceivedEmail], value: Any) -> QuerySet[ReceivedEmail]:
        return qs.filter(**{f"{self.field_name}__icontains": with_a_labels(value)}) if value else qs


class IdFilter(FieldFilter):
    """An id; a text that is none matches nothing. prefix: of the ids."""

    def __init__(self, *arguments: Any, prefix: str, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.prefix = prefix

    def filter(self, qs: QuerySet[ReceivedEmail], value: Any) -> QuerySet[ReceivedEmail]:
        if not value:
            return qs
        return qs.filter(**{self.field_name: value}) if is_id(value, prefix=self.prefix) else qs.none()


class DomainFilter(FieldFilter):
    """The name of a domain, ignoring case."""

    def filter(self, qs: QuerySet[InboundRoute], value: Any) -> QuerySet[InboundRoute]:
        return qs.filter(domain=value.lower()) if value else qs


class TestFilter(FieldFilter):
    __test__ = False  # not a test of pytest

    def filter(self, qs: QuerySet[ReceivedEmail], value: Any) -> QuerySet[ReceivedEmail]:
        return qs.filter(is_test=value == "true") if value else qs


class RouteFilters(FilterSet):
    domain = DomainFilter(_text("Only routes of this domain, or of `shared`.", max_length=253))


class ReceivedFilters(FilterSet):
    recipient = SubstringFilter(_text("Only addresses that received it that contain this text, ignoring case."))
    locals()["from"] = SubstringFilter(_text("Only senders that contain this text, ignoring case."), "sender")
    subject = SubstringFilter(_text("Only subjects that contain this text, ignoring case."))
    tag = FieldFilter(_text("Only emails with this tag.", max_length=64))
    status = FieldFilter(OptionField(ReceivedStatus.choices, help_text="Only emails with this status."))
    routeId = IdFilter(_text("Only emails of this route."), "route_id", prefix="rt_")
    emailId = IdFilter(_text("Only answers to this sent email."), "reply_email_id", prefix="")
    after = FieldFilter(
        DateTimeBoundField(is_end=False, help_text="Only emails received at this time or later."),
        "received_at",
        lookup_expr="gte",
    )
    before = FieldFilter(
        DateTimeBoundField(is_end=True, help_text="Only emails received at this time or earlier."),
        "received_at",
        lookup_expr="lte",
    )
    test = TestFilter(OptionField(["true", "false"], help_text="Only simulated emails, or only others."))
