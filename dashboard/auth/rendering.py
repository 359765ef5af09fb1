"""Page renderer protocol: the rendering method of a site, passed to views that both sites share."""

from typing import Any, Protocol

from django.http import HttpRequest, HttpResponse


class PageRenderer(Protocol):
    def __call__(self, request: HttpRequest, template: str, **context: Any) -> HttpResponse: ...
