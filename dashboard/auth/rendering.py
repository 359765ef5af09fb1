"""How a view that both sites, or strangers, may see is handed a site's way to render."""

from typing import Any, Protocol

from django.http import HttpRequest, HttpResponse


class PageRenderer(Protocol):
    def __call__(self, request: HttpRequest, template: str, **context: Any) -> HttpResponse: ...
