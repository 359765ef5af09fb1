"""Content negotiation: the first renderer of the view for clients that accept any media type."""

from collections.abc import Iterable
from typing import Any

from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request

ANYTHING = "*/*"


class Negotiation(DefaultContentNegotiation):
    """DRF's negotiation, only for clients that request a media type: it costs as much as checking an API key."""

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> Any:
        """Return the renderer and its media type."""
        if request.META.get("HTTP_ACCEPT", ANYTHING) == ANYTHING:
            first = next(iter(renderers))
            return first, first.media_type
        return super().select_renderer(request, renderers, format_suffix)
