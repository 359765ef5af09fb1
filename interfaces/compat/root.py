"""Compatibility endpoints at the root: `COMPAT_AT_ROOT` names the dialects whose paths need no prefix.

No path of Postrider begins with the first segment of theirs.
"""

from collections.abc import Callable, Mapping

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase

from interfaces.compat.endpoints import first_segments
from interfaces.compat.postmark.tokens import TOKEN_HEADERS


class CompatAtRootMiddleware:
    """Gives a request to a dialect at the root the path of its compatibility endpoint. First of all middleware."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        dialect = _dialect(request.path_info, request.META)
        if dialect:
            request.path_info = f"/compat/{dialect}{request.path_info}"
        return self.get_response(request)


def _dialect(path: str, meta: Mapping[str, object]) -> str | None:
    segment = path.split("/", 2)[1].lower() if path.startswith("/") else ""
    dialects = [dialect for dialect in settings.COMPAT_AT_ROOT if segment in first_segments(dialect)]
    if len(dialects) > 1:
        # Resend and Postmark share some segments; only Postmark's clients send its headers.
        return "postmark" if any(header in meta for header in TOKEN_HEADERS) else "resend"
    return dialects[0] if dialects else None
