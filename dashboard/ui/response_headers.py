"""What a browser may do on the pages of both admin sites."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

SITES = ("/dashboard/", "/admin/")

# 'unsafe-eval': Alpine 3 evaluates the attributes of unfold's templates. 'unsafe-inline' for styles alone:
# unfold writes its colours into a <style> and htmx one of its own; there is no inline script anywhere.
POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "font-src 'self'; connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)


class PageHeadersMiddleware:
    """Gives the pages their Content-Security-Policy; a response that brings its own keeps it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if request.path_info.startswith(SITES) and "Content-Security-Policy" not in response.headers:
            response.headers["Content-Security-Policy"] = POLICY
            response.headers["X-Frame-Options"] = "DENY"
        return response
