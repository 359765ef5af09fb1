"""Compatibility endpoints at the root: `COMPAT_AT_ROOT` names the dialects whose paths need no prefix."""

from collections.abc import Callable, Mapping

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase

# The first segments of each dialect's paths. None of them begins a path of Postrider.
SEGMENTS = {
    "resend": frozenset(
        {
            "api-keys",
            "audiences",
            "automations",
            "broadcasts",
            "contact-properties",
            "contacts",
            "domains",
            "emails",
            "events",
            "inboxes",
            "logs",
            "oauth",
            "segments",
            "suppressions",
            "templates",
            "topics",
            "usage",
            "webhooks",
        }
    ),
    "postmark": frozenset(
        {
            "email",
            "messages",
            "bounces",
            "deliverystats",
            "stats",
            "templates",
            "message-streams",
            "webhooks",
            "server",
            "triggers",
        }
    ),
    "sendgrid": frozenset({"v3"}),
}
POSTMARK_HEADERS = ("HTTP_X_POSTMARK_SERVER_TOKEN", "HTTP_X_POSTMARK_ACCOUNT_TOKEN")


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
    found = [dialect for dialect in settings.COMPAT_AT_ROOT if segment in SEGMENTS[dialect]]
    if len(found) > 1:
        # Resend and Postmark share some segments; only Postmark's clients send its headers.
        return "postmark" if any(header in meta for header in POSTMARK_HEADERS) else "resend"
    return found[0] if found else None
