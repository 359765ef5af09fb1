"""Pagination of lists: `{data, total, page, limit}` (docs/specification.md, Conventions)."""

from typing import Any

from rest_framework import serializers
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response

MAX_LIMIT = 100


class PagePagination(BasePagination):
    """Pages by number. A limit above 100 is reduced to 100, also in the response; a page past the end is empty."""

    default_limit = 20

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        self.read_query(request)
        self.total = queryset.count()
        return list(queryset[self.slice]) if self.start < self.total else []

    def read_query(self, request: Request) -> None:
        """Read page and limit from the query string. Raises ValidationError."""
        self.page = _positive(request, "page", default=1)
        self.limit = min(_positive(request, "limit", default=self.default_limit), MAX_LIMIT)

    @property
    def start(self) -> int:
        return (self.page - 1) * self.limit

    @property
    def slice(self) -> slice:
        return slice(self.start, self.start + self.limit)

    def get_paginated_response(self, data: Any) -> Response:
        return Response({"data": data, "total": self.total, "page": self.page, "limit": self.limit})


def _positive(request: Request, name: str, *, default: int) -> int:
    raw = request.query_params.get(name, str(default))
    if raw.isascii() and raw.isdigit() and len(raw) <= 9 and int(raw) > 0:
        return int(raw)
    message = f"{name} must be a positive integer."
    raise serializers.ValidationError({name: serializers.ErrorDetail(message, code="invalid")})
