"""Query parameters: a list, an export, the feed and a statistic refuse those that they do not have.

See docs/decisions/0211.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django_filters.filterset import FilterSet
from django_filters.utils import translate_validation
from rest_framework import serializers
from rest_framework.request import Request

from core.api.fields import MAX_UNKNOWN_REPORTED, FieldErrors
from core.api.pagination import page_errors
from core.api.suggestions import MAX_NAME_LENGTH, suggest_parameter

PAGING = ("page", "limit")


@dataclass(frozen=True)
class DeclaredQuery:
    """The parameters of an operation: those of serializers, of a filterset, and of pages."""

    inputs: tuple[type[serializers.Serializer[Any]], ...] = ()
    filterset: type[FilterSet] | None = None
    has_pages: bool = False

    @cached_property
    def names(self) -> list[str]:
        paging = PAGING if self.has_pages else ()
        of_inputs = (name for declared in self.inputs for name in declared().fields)
        return [*paging, *of_inputs, *(self.filterset.base_filters if self.filterset else ())]

    def refuse_unknown(self, request: Request, view: Any) -> None:
        """Raise ValidationError if there are unknown parameters, with the errors of the others too."""
        unknown = [name for name in request.query_params if name not in self.names]
        if not unknown:
            return
        errors: FieldErrors = {name: [_unknown(name, self.names)] for name in unknown[:MAX_UNKNOWN_REPORTED]}
        for others in self._errors_of_values(request, view):
            errors |= others
        raise serializers.ValidationError(errors)

    def _errors_of_values(self, request: Request, view: Any) -> Iterator[FieldErrors]:
        if self.has_pages:
            yield page_errors(request)
        for declared in self.inputs:
            given = declared(data=request.query_params.dict())
            given.is_valid()
            yield given.errors
        if self.filterset:
            given = self.filterset(request.query_params, view.queryset.none(), request=request)
            yield translate_validation(given.errors).detail


def refuse_unknown_parameters(request: Request, view: Any) -> None:
    """Raise ValidationError for parameters that the operation of the view does not have, if it has a query."""
    # An APIView has one method, which is described by its HTTP method.
    name = view.action if hasattr(view, "action_map") else (request.method or "").lower().replace("head", "get")
    if query := view.queries.get(name):
        query.refuse_unknown(request, view)


def _unknown(name: str, known: list[str]) -> serializers.ErrorDetail:
    hint = suggest_parameter(name, known) or (f" Use one of: {', '.join(known)}." if known else "")
    return serializers.ErrorDetail(f"Unknown parameter {name[:MAX_NAME_LENGTH]!r}.{hint}", code="unknown_parameter")
