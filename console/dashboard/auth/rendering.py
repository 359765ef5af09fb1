"""Page renderer protocol: the rendering method of a site, passed to views that both sites share."""

from typing import Any, Protocol

from django.http import HttpRequest, HttpResponse


class PageRenderer(Protocol):
    def __call__(self, request: HttpRequest, template: str, **context: Any) -> HttpResponse: ...


def expired_link_page(request: HttpRequest, page: PageRenderer, **context: Any) -> HttpResponse:
    """Return the page for a link of an email that no longer works. context: title, advice, and is_reset or not."""
    response = page(request, "dashboard/link_expired.html", **context)
    response.status_code = 410
    return response
