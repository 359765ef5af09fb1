"""Paths of SendGrid's API."""

from typing import Any

from django.urls import path, re_path

from interfaces.compat.sendgrid.batches import SendGridBatchViewSet, SendGridScheduledSendViewSet
from interfaces.compat.sendgrid.domains import SendGridDomainViewSet
from interfaces.compat.sendgrid.event_webhook import SendGridEventWebhookViewSet
from interfaces.compat.sendgrid.groups import SendGridGroupSuppressionViewSet, SendGridGroupViewSet
from interfaces.compat.sendgrid.receiving.settings import SendGridParseViewSet
from interfaces.compat.sendgrid.stats import SendGridStatsViewSet
from interfaces.compat.sendgrid.suppressions import LISTS, SendGridSuppressionViewSet
from interfaces.compat.sendgrid.templates import SendGridTemplateViewSet
from interfaces.compat.sendgrid.views import SendGridMailViewSet

ALL: Any = {"get": "list", "delete": "clear"}
ONE: Any = {"get": "retrieve", "delete": "destroy"}
MANY: Any = {"get": "list", "post": "create"}
CHANGEABLE: Any = {"get": "retrieve", "patch": "partial_update", "delete": "destroy"}
KEY: Any = {"get": "retrieve_key", "patch": "update_key"}
UNSUBSCRIBES = {"name": "unsubscribes"}
# Unsubscribes are deleted at GLOBAL.
DELETABLE = [name for name in LISTS if name not in UNSUBSCRIBES.values()]
ASM = "v3/asm/suppressions"
GLOBAL = f"{ASM}/global"
GROUPS = "v3/asm/groups"
GROUP = f"{GROUPS}/<str:number>"
TEMPLATE = "v3/templates/<str:reference>"
VERSION = f"{TEMPLATE}/versions/<str:version>"
DOMAINS = "v3/whitelabel/domains"
EVENT_WEBHOOK = "v3/user/webhooks/event"
PARSE = "v3/user/webhooks/parse"

urlpatterns = [
    path("v3/mail/send", SendGridMailViewSet.as_view({"post": "send"})),
    path("v3/mail/batch", SendGridBatchViewSet.as_view({"post": "create"})),
    path("v3/mail/batch/<str:pk>", SendGridBatchViewSet.as_view({"get": "retrieve"})),
    path("v3/user/scheduled_sends", SendGridScheduledSendViewSet.as_view(MANY)),
    path("v3/user/scheduled_sends/<str:pk>", SendGridScheduledSendViewSet.as_view(CHANGEABLE)),
    path("v3/scopes", SendGridMailViewSet.as_view({"get": "scopes"})),
    path("v3/stats", SendGridStatsViewSet.as_view({"get": "list"})),
    *(path(f"v3/suppression/{name}", SendGridSuppressionViewSet.as_view(ALL), {"name": name}) for name in DELETABLE),
    *(
        path(f"v3/suppression/{name}/<str:address>", SendGridSuppressionViewSet.as_view(ONE), {"name": name})
        for name in DELETABLE
    ),
    path("v3/suppression/unsubscribes", SendGridSuppressionViewSet.as_view({"get": "list"}), UNSUBSCRIBES),
    path(GLOBAL, SendGridSuppressionViewSet.as_view({"post": "create_global"}), UNSUBSCRIBES),
    path(
        f"{GLOBAL}/<str:address>",
        SendGridSuppressionViewSet.as_view({"get": "retrieve_global", "delete": "destroy"}),
        UNSUBSCRIBES,
    ),
    path(ASM, SendGridGroupSuppressionViewSet.as_view({"get": "list_all"})),
    path(f"{ASM}/<str:address>", SendGridGroupSuppressionViewSet.as_view({"get": "retrieve"})),
    path(GROUPS, SendGridGroupViewSet.as_view(MANY)),
    path(GROUP, SendGridGroupViewSet.as_view(CHANGEABLE)),
    path(f"{GROUP}/suppressions", SendGridGroupSuppressionViewSet.as_view(MANY)),
    path(f"{GROUP}/suppressions/search", SendGridGroupSuppressionViewSet.as_view({"post": "search"})),
    path(
        f"{GROUP}/suppressions/<str:address>",
        SendGridGroupSuppressionViewSet.as_view({"delete": "destroy"}),
    ),
    path("v3/templates", SendGridTemplateViewSet.as_view(MANY)),
    path(TEMPLATE, SendGridTemplateViewSet.as_view(CHANGEABLE)),
    path(f"{TEMPLATE}/versions", SendGridTemplateViewSet.as_view({"post": "create_version"})),
    path(
        VERSION,
        SendGridTemplateViewSet.as_view(
            {"get": "retrieve_version", "patch": "update_version", "delete": "destroy_version"}
        ),
    ),
    path(f"{VERSION}/activate", SendGridTemplateViewSet.as_view({"post": "activate"})),
    path(DOMAINS, SendGridDomainViewSet.as_view(MANY)),
    path(f"{DOMAINS}/default", SendGridDomainViewSet.as_view({"get": "absent"})),
    path(f"{DOMAINS}/subuser", SendGridDomainViewSet.as_view({"get": "absent", "delete": "absent"})),
    path(f"{DOMAINS}/<str:number>", SendGridDomainViewSet.as_view(ONE | {"patch": "absent"})),
    path(f"{DOMAINS}/<str:number>/validate", SendGridDomainViewSet.as_view({"post": "verify"})),
    path(
        f"{EVENT_WEBHOOK}/settings",
        SendGridEventWebhookViewSet.as_view({"get": "retrieve_oldest", "patch": "update_oldest", "post": "create"}),
    ),
    path(f"{EVENT_WEBHOOK}/settings/all", SendGridEventWebhookViewSet.as_view({"get": "list_all"})),
    path(f"{EVENT_WEBHOOK}/settings/signed", SendGridEventWebhookViewSet.as_view(KEY)),
    path(f"{EVENT_WEBHOOK}/settings/signed/<str:pk>", SendGridEventWebhookViewSet.as_view(KEY)),
    path(
        f"{EVENT_WEBHOOK}/settings/<str:pk>",
        SendGridEventWebhookViewSet.as_view({"get": "retrieve", "patch": "update", "delete": "destroy"}),
    ),
    path(f"{EVENT_WEBHOOK}/test", SendGridEventWebhookViewSet.as_view({"post": "test"})),
    path(f"{PARSE}/settings", SendGridParseViewSet.as_view(MANY)),
    path(f"{PARSE}/settings/<str:hostname>", SendGridParseViewSet.as_view(CHANGEABLE)),
    path(f"{PARSE}/stats", SendGridParseViewSet.as_view({"get": "stats"})),
    re_path("", SendGridMailViewSet.as_view(dict.fromkeys(("get", "post", "put", "patch", "delete"), "absent"))),
]
