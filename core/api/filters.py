"""Filters of lists, applied by django-filter. The OpenAPI document derives the query parameters from them.

See docs/decisions/0076.
"""

from typing import Any

from django import forms
from django.db.models import QuerySet
from django_filters import Filter
from django_filters.filterset import FilterSet
from django_filters.rest_framework import DjangoFilterBackend
from rest_framework import serializers
from rest_framework.request import Request

from core.api.fields import invalid_range, is_reversed
from core.api.pagination import page_errors

Parameter = serializers.Field[Any, Any, Any, Any]


class RepeatedInput(forms.TextInput):
    """Reads a list of names, separated by commas or, as most HTTP libraries send lists, in several parameters."""

    def value_from_datadict(self, data: Any, files: Any, name: str) -> str | None:
        return ",".join(data.getlist(name)) if name in data else None


class FieldFilter(Filter):
    """One query parameter. A serializer field validates its value; an empty value does not filter."""

    widget = forms.TextInput

    def __init__(self, parameter: Parameter, field_name: str | None = None, **options: Any) -> None:
        super().__init__(field_name, **options)
        self.parameter = parameter

    @property
    def field(self) -> "ParameterField":
        return ParameterField(self.parameter, widget=self.widget)


class ParameterField(forms.Field):
    """A form field that validates with a serializer field; a missing or empty value is None."""

    def __init__(self, parameter: Parameter, *, widget: type[forms.Widget]) -> None:
        super().__init__(required=False, widget=widget)
        self.parameter = parameter

    def clean(self, value: Any) -> Any:
        try:
            return self.parameter.run_validation(value) if value else None
        except serializers.ValidationError as error:
            raise forms.ValidationError([_form_error(detail) for detail in error.detail]) from error


class RangeForm(forms.Form):
    """The form of a filterset with the parameters `from` and `to`."""

    def clean(self) -> dict[str, Any]:
        if is_reversed(self.cleaned_data):
            self.add_error("from", _form_error(invalid_range()))
        return self.cleaned_data


class FilterBackend(DjangoFilterBackend):
    """Filters lists by the filterset_class of their view; views of single objects ignore the parameters."""

    def filter_queryset(self, request: Request, queryset: QuerySet[Any], view: Any) -> QuerySet[Any]:
        """Return the filtered rows. Raises ValidationError with the errors of the page, too, which is read later."""
        try:
            filtered: QuerySet[Any] = super().filter_queryset(request, queryset, view)
        except serializers.ValidationError as error:
            others = page_errors(request) if view.action == "list" else {}
            raise serializers.ValidationError({**error.detail, **others}) from error  # type: ignore[dict-item]
        return filtered

    def get_filterset_class(self, view: Any, queryset: QuerySet[Any] | None = None) -> type[FilterSet] | None:
        return None if view.detail else super().get_filterset_class(view, queryset)

    def get_filterset(self, request: Request, queryset: QuerySet[Any], view: Any) -> FilterSet | None:
        """Return the filterset, and keep it for the pagination of the view."""
        view.filterset = super().get_filterset(request, queryset, view)
        return view.filterset


def _form_error(detail: Any) -> forms.ValidationError:
    # A text may contain percent signs, so it must not be the format itself.
    return forms.ValidationError("%(detail)s", code=detail.code, params={"detail": detail})
