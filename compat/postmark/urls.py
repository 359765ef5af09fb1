"""Paths of Postmark's API, whose clients spell them in different cases."""

from collections.abc import Callable
from typing import Any

from django.urls import URLPattern, re_path

from compat.postmark.management import (
    PostmarkServerViewSet,
    PostmarkSuppressionViewSet,
    PostmarkTemplateViewSet,
)
from compat.postmark.views import PostmarkBounceViewSet, PostmarkEmailViewSet, PostmarkMessageViewSet

SUPPRESSIONS = "message-streams/:stream/suppressions"
ONE_TEMPLATE: Any = {"get": "retrieve", "put": "update", "delete": "destroy"}


def postmark_path(route: str, view: Callable[..., Any]) -> URLPattern:
    """Return the pattern of a path, in any case and with or without a trailing slash; `:name` is a parameter."""
    return re_path(rf"^{'/'.join(map(_segment_pattern, route.split('/')))}/?$", view)


def _segment_pattern(segment: str) -> str:
    # Django cannot reverse a pattern with the flag for any case, and then reverses none.
    if segment.startswith(":"):
        return f"(?P<{segment[1:]}>[^/]+)"
    return "".join(f"[{letter.lower()}{letter.upper()}]" if letter.isalpha() else letter for letter in segment)


urlpatterns = [
    postmark_path("email", PostmarkEmailViewSet.as_view({"post": "send"})),
    postmark_path("email/batch", PostmarkEmailViewSet.as_view({"post": "batch"})),
    postmark_path("email/withTemplate", PostmarkEmailViewSet.as_view({"post": "send_template"})),
    postmark_path("email/batchWithTemplates", PostmarkEmailViewSet.as_view({"post": "batch_templates"})),
    postmark_path("messages/outbound", PostmarkMessageViewSet.as_view({"get": "list"})),
    postmark_path("messages/outbound/:pk/details", PostmarkMessageViewSet.as_view({"get": "details"})),
    postmark_path("bounces", PostmarkBounceViewSet.as_view({"get": "list"})),
    postmark_path("deliverystats", PostmarkBounceViewSet.as_view({"get": "delivery_stats"})),
    postmark_path("templates", PostmarkTemplateViewSet.as_view({"get": "list", "post": "create"})),
    postmark_path("templates/validate", PostmarkTemplateViewSet.as_view({"post": "validate"})),
    postmark_path("templates/:reference", PostmarkTemplateViewSet.as_view(ONE_TEMPLATE)),
    postmark_path(f"{SUPPRESSIONS}/dump", PostmarkSuppressionViewSet.as_view({"get": "dump"})),
    postmark_path(SUPPRESSIONS, PostmarkSuppressionViewSet.as_view({"post": "create"})),
    postmark_path(f"{SUPPRESSIONS}/delete", PostmarkSuppressionViewSet.as_view({"post": "delete"})),
    postmark_path("server", PostmarkServerViewSet.as_view({"get": "retrieve", "put": "absent"})),
    re_path("", PostmarkEmailViewSet.as_view(dict.fromkeys(("get", "post", "put", "patch", "delete"), "absent"))),
]
