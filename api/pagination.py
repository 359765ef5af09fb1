"""Pages of a list: `{data, total, page, limit}` (CONTRACT section 1)."""

from typing import Any

from rest_framework import serializers
from rest_framework.pagination import BasePagination
from rest_framework.request import Request
from rest_framework.response import Response

MAX_LIMIT = 100


class PagePagination(BasePagination):
    """A page by number; a limit over 100 is served as 100 and echoed, a page past the end is empty."""

    default_limit = 20

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        self.read(request)
        self.total = queryset.count()
        return list(queryset[self.slice]) if self.start < self.total else []

    def read(self, request: Request) -> None:
        """Take page and limit from the query. Raises ValidationError."""
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
    message = f"{name} must be a whole number from 1."
    raise serializers.ValidationError({name: serializers.ErrorDetail(message, code="invalid")})
