"""Pagination of lists: `{data, total, page, limit}` (docs/specification.md, Conventions)."""

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from rest_framework import serializers
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.fields import FieldErrors

MAX_LIMIT = 100
POSITIVE_INTEGER = re.compile(r"(?=0*[1-9])[0-9]{1,9}")


class PagePagination(BasePagination):
    """Pages by number. A limit above 100 is reduced to 100, also in the response; a page past the end is empty."""

    default_limit = 20
    # Members of the response, besides those of every list.
    more_members: ClassVar[Mapping[str, "serializers.Field[Any, Any, Any, Any]"]] = {}

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        self.read_query(request)
        self.total = len(queryset) if isinstance(queryset, list) else queryset.count()
        return list(queryset[self.slice]) if self.start < self.total else []

    def read_query(self, request: Request) -> None:
        """Read page and limit from the query string. Raises ValidationError."""
        if errors := page_errors(request):
            raise serializers.ValidationError(errors)
        self.page = int(request.query_params.get("page", 1))
        self.limit = min(int(request.query_params.get("limit", self.default_limit)), MAX_LIMIT)

    @property
    def start(self) -> int:
        return (self.page - 1) * self.limit

    @property
    def slice(self) -> slice:
        return slice(self.start, self.start + self.limit)

    def get_paginated_response(self, data: Any) -> Response:
        return Response({"data": data, "total": self.total, "page": self.page, "limit": self.limit})


def page_errors(request: Request) -> FieldErrors:
    """Return the errors of page and limit in the query string."""
    return {
        name: [serializers.ErrorDetail(f"{name} must be a positive integer.", code="invalid")]
        for name in ("page", "limit")
        if not POSITIVE_INTEGER.fullmatch(request.query_params.get(name, "1"))
    }
