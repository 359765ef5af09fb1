"""Filters of the suppression list."""

from typing import Any

from django_filters import FilterSet

from core.api.fields import OptionField, TextField
from core.api.filters import FieldFilter
from suppressions.models import Suppression, SuppressionQuerySet

MAX_SEARCH_LENGTH = 200


class AddressSearchFilter(FieldFilter):
    def filter(self, qs: SuppressionQuerySet, value: Any) -> SuppressionQuerySet:
        return qs.matching(search=value or "")


class SuppressionFilters(FilterSet):
    reason = FieldFilter(
        OptionField(Suppression.Reason.choices, help_text="Only addresses suppressed for this reason.")
    )
    stream = FieldFilter(
        TextField(
            allow_blank=True,
            max_length=40,
            help_text="Only suppressions of this stream; those of the whole workspace have none.",
        )
    )
    search = AddressSearchFilter(
        TextField(
            allow_blank=True,
            max_length=MAX_SEARCH_LENGTH,
            help_text="Only addresses that contain this text, ignoring case.",
        )
    )
