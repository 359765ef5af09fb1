"""Paths of Resend's API."""

from typing import Any

from django.urls import path, re_path

from interfaces.compat.resend.api_keys import ResendApiKeyViewSet
from interfaces.compat.resend.domains import ResendDomainViewSet
from interfaces.compat.resend.receiving.views import ResendReceivedViewSet
from interfaces.compat.resend.suppressions import ResendSuppressionViewSet
from interfaces.compat.resend.templates import ResendTemplateViewSet
from interfaces.compat.resend.topics import ResendTopicViewSet
from interfaces.compat.resend.views import ResendEmailViewSet
from interfaces.compat.resend.webhooks import ResendWebhookEventViewSet, ResendWebhookViewSet

MANY: Any = {"get": "list", "post": "create"}
ONE: Any = {"get": "retrieve", "patch": "update", "delete": "destroy"}
ABSENT: Any = dict.fromkeys(("get", "post", "put", "patch", "delete"), "absent")
ONE_EVENT = "webhooks/<str:webhook_id>/events/<str:pk>"

urlpatterns = [
    path("emails", ResendEmailViewSet.as_view({"post": "send", "get": "list"})),
    path("emails/batch", ResendEmailViewSet.as_view({"post": "batch"})),
    # Not ids.
    re_path("^(?:emails/metrics|domains/claim)$", ResendEmailViewSet.as_view(ABSENT)),
    path("emails/receiving", ResendReceivedViewSet.as_view({"get": "list"})),
    path("emails/receiving/<str:pk>", ResendReceivedViewSet.as_view({"get": "retrieve"})),
    path("emails/receiving/<str:pk>/attachments", ResendReceivedViewSet.as_view({"get": "attachments"})),
    path(
        "emails/receiving/<str:pk>/attachments/<str:attachment>",
        ResendReceivedViewSet.as_view({"get": "attachment"}),
    ),
    path("emails/<str:pk>", ResendEmailViewSet.as_view({"get": "retrieve", "patch": "update"})),
    path("emails/<str:pk>/cancel", ResendEmailViewSet.as_view({"post": "cancel"})),
    path("emails/<str:pk>/attachments", ResendEmailViewSet.as_view({"get": "attachments"})),
    path("emails/<str:pk>/attachments/<str:attachment>", ResendEmailViewSet.as_view({"get": "attachment"})),
    path("domains", ResendDomainViewSet.as_view(MANY)),
    path("domains/<str:pk>", ResendDomainViewSet.as_view(ONE)),
    path("domains/<str:pk>/verify", ResendDomainViewSet.as_view({"post": "verify"})),
    path("templates", ResendTemplateViewSet.as_view(MANY)),
    path("templates/<str:pk>", ResendTemplateViewSet.as_view(ONE)),
    path("templates/<str:pk>/publish", ResendTemplateViewSet.as_view({"post": "publish"})),
    path("templates/<str:pk>/duplicate", ResendTemplateViewSet.as_view({"post": "duplicate"})),
    path("topics", ResendTopicViewSet.as_view(MANY)),
    path("topics/<str:pk>", ResendTopicViewSet.as_view(ONE)),
    path("suppressions", ResendSuppressionViewSet.as_view(MANY)),
    path("suppressions/batch/add", ResendSuppressionViewSet.as_view({"post": "add_batch"})),
    path("suppressions/batch/remove", ResendSuppressionViewSet.as_view({"post": "remove_batch"})),
    path("suppressions/<str:pk>", ResendSuppressionViewSet.as_view({"get": "retrieve", "delete": "destroy"})),
    path("webhooks", ResendWebhookViewSet.as_view(MANY)),
    path("webhooks/<str:pk>", ResendWebhookViewSet.as_view(ONE)),
    path("webhooks/<str:pk>/signing-secret/rotate", ResendWebhookViewSet.as_view({"post": "rotate"})),
    path("webhooks/<str:webhook_id>/events", ResendWebhookEventViewSet.as_view({"get": "list"})),
    path(ONE_EVENT, ResendWebhookEventViewSet.as_view({"get": "retrieve"})),
    path(f"{ONE_EVENT}/replay", ResendWebhookEventViewSet.as_view({"post": "replay"})),
    path(f"{ONE_EVENT}/attempts", ResendWebhookEventViewSet.as_view({"get": "attempts"})),
    path("api-keys", ResendApiKeyViewSet.as_view(MANY)),
    path("api-keys/<str:pk>", ResendApiKeyViewSet.as_view({"delete": "destroy", "patch": "absent"})),
    re_path("", ResendEmailViewSet.as_view(ABSENT)),
]
