"""Paths of Postmark's API, whose clients spell them in different cases."""

from collections.abc import Callable
from typing import Any

from django.urls import URLPattern, re_path

from interfaces.compat.postmark.bounces import PostmarkBounceViewSet
from interfaces.compat.postmark.bulk import PostmarkBulkViewSet
from interfaces.compat.postmark.management import (
    PostmarkStreamViewSet,
    PostmarkSuppressionViewSet,
    PostmarkTemplateViewSet,
)
from interfaces.compat.postmark.receiving.messages import PostmarkInboundViewSet
from interfaces.compat.postmark.receiving.rules import PostmarkInboundRuleViewSet
from interfaces.compat.postmark.receiving.server import PostmarkServerViewSet
from interfaces.compat.postmark.stats import PostmarkStatsViewSet
from interfaces.compat.postmark.views import PostmarkEmailViewSet, PostmarkMessageViewSet
from interfaces.compat.postmark.webhooks import PostmarkWebhookViewSet

STREAM = "message-streams/<stream>"
SUPPRESSIONS = f"{STREAM}/suppressions"
ONE_OBJECT: Any = {"get": "retrieve", "put": "update", "delete": "destroy"}


def postmark_path(route: str, view: Callable[..., Any]) -> URLPattern:
    """Return the pattern of a path, in any case and with or without a trailing slash.

    The name of the pattern is the path, for interfaces.compat.endpoints.
    """
    return re_path(rf"^{'/'.join(map(_segment_pattern, route.split('/')))}/?$", view, name=route)


def _segment_pattern(segment: str) -> str:
    # Django cannot reverse a pattern with the flag for any case, and then reverses none.
    if segment.startswith("<"):
        return f"(?P{segment}[^/]+)"
    return "".join(f"[{letter.lower()}{letter.upper()}]" if letter.isalpha() else letter for letter in segment)


urlpatterns = [
    postmark_path("email", PostmarkEmailViewSet.as_view({"post": "send"})),
    postmark_path("email/batch", PostmarkEmailViewSet.as_view({"post": "batch"})),
    postmark_path("email/withTemplate", PostmarkEmailViewSet.as_view({"post": "send_template"})),
    postmark_path("email/batchWithTemplates", PostmarkEmailViewSet.as_view({"post": "batch_templates"})),
    postmark_path("email/bulk", PostmarkBulkViewSet.as_view({"post": "send"})),
    postmark_path("email/bulk/<pk>", PostmarkBulkViewSet.as_view({"get": "retrieve"})),
    postmark_path("messages/outbound", PostmarkMessageViewSet.as_view({"get": "list"})),
    postmark_path("messages/outbound/<pk>/details", PostmarkMessageViewSet.as_view({"get": "details"})),
    postmark_path("messages/outbound/opens/<pk>", PostmarkMessageViewSet.as_view({"get": "opens"})),
    postmark_path("messages/outbound/clicks/<pk>", PostmarkMessageViewSet.as_view({"get": "clicks"})),
    postmark_path("bounces", PostmarkBounceViewSet.as_view({"get": "list"})),
    postmark_path("bounces/tags", PostmarkBounceViewSet.as_view({"get": "tags"})),
    postmark_path("bounces/<number>", PostmarkBounceViewSet.as_view({"get": "retrieve"})),
    postmark_path("bounces/<number>/dump", PostmarkBounceViewSet.as_view({"get": "dump"})),
    postmark_path("bounces/<number>/activate", PostmarkBounceViewSet.as_view({"put": "activate"})),
    postmark_path("deliveryStats", PostmarkBounceViewSet.as_view({"get": "delivery_stats"})),
    postmark_path("templates", PostmarkTemplateViewSet.as_view({"get": "list", "post": "create"})),
    postmark_path("templates/validate", PostmarkTemplateViewSet.as_view({"post": "validate"})),
    # Not an alias.
    postmark_path("templates/push", PostmarkTemplateViewSet.as_view({"put": "push"})),
    postmark_path("templates/<reference>", PostmarkTemplateViewSet.as_view(ONE_OBJECT)),
    postmark_path(f"{SUPPRESSIONS}/dump", PostmarkSuppressionViewSet.as_view({"get": "dump"})),
    postmark_path(SUPPRESSIONS, PostmarkSuppressionViewSet.as_view({"post": "create"})),
    postmark_path(f"{SUPPRESSIONS}/delete", PostmarkSuppressionViewSet.as_view({"post": "delete"})),
    postmark_path("message-streams", PostmarkStreamViewSet.as_view({"get": "list", "post": "create"})),
    postmark_path(STREAM, PostmarkStreamViewSet.as_view({"get": "retrieve", "patch": "partial_update"})),
    postmark_path(f"{STREAM}/archive", PostmarkStreamViewSet.as_view({"post": "archive"})),
    postmark_path(f"{STREAM}/unarchive", PostmarkStreamViewSet.as_view({"post": "unarchive"})),
    postmark_path("messages/inbound", PostmarkInboundViewSet.as_view({"get": "list"})),
    postmark_path("messages/inbound/<pk>/details", PostmarkInboundViewSet.as_view({"get": "details"})),
    postmark_path("messages/inbound/<pk>/bypass", PostmarkInboundViewSet.as_view({"put": "bypass"})),
    postmark_path("messages/inbound/<pk>/retry", PostmarkInboundViewSet.as_view({"put": "retry"})),
    postmark_path("triggers/inboundRules", PostmarkInboundRuleViewSet.as_view({"get": "list", "post": "create"})),
    postmark_path("triggers/inboundRules/<number>", PostmarkInboundRuleViewSet.as_view({"delete": "destroy"})),
    postmark_path("server", PostmarkServerViewSet.as_view({"get": "retrieve", "put": "update"})),
    postmark_path("webhooks", PostmarkWebhookViewSet.as_view({"get": "list", "post": "create"})),
    postmark_path("webhooks/<number>", PostmarkWebhookViewSet.as_view(ONE_OBJECT)),
    postmark_path("stats/outbound", PostmarkStatsViewSet.as_view({"get": "overview"})),
    *(
        postmark_path(f"stats/outbound/{name}", PostmarkStatsViewSet.as_view({"get": name}))
        for name in ("sends", "bounces", "spam", "opens", "clicks")
    ),
    re_path("", PostmarkEmailViewSet.as_view(dict.fromkeys(("get", "post", "put", "patch", "delete"), "absent"))),
]
