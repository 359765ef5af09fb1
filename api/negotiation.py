"""Which form an answer has: the view's first one for callers who take anything, without reading it out of a list."""

from collections.abc import Iterable
from typing import Any

from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

ANYTHING = "*/*"


class Negotiation(DefaultContentNegotiation):
    """The framework's, which costs as much as checking an API key, for those alone who ask for a form."""

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> Any:
        """Return a renderer and its media type."""
        if request.META.get("HTTP_ACCEPT", ANYTHING) == ANYTHING:
            first = next(iter(renderers))
            return first, first.media_type
        return super().select_renderer(request, renderers, format_suffix)
