"""Paths of SendGrid's API."""

from django.urls import path, re_path

from compat.sendgrid.views import SendGridMailViewSet, SendGridSuppressionViewSet, SendGridTemplateViewSet

LIST = "v3/suppression/(?P<name>bounces|blocks|spam_reports|unsubscribes|invalid_emails)"

urlpatterns = [
    path("v3/mail/send", SendGridMailViewSet.as_view({"post": "send"})),
    path("v3/scopes", SendGridMailViewSet.as_view({"get": "scopes"})),
    re_path(f"^{LIST}$", SendGridSuppressionViewSet.as_view({"get": "list", "delete": "absent"})),
    re_path(
        f"^{LIST}/(?P<address>[^/]+)$", SendGridSuppressionViewSet.as_view({"get": "retrieve", "delete": "destroy"})
    ),
    path("v3/templates", SendGridTemplateViewSet.as_view({"get": "list", "post": "absent"})),
    path("v3/templates/<str:reference>", SendGridTemplateViewSet.as_view({"get": "retrieve", "patch": "absent"})),
    re_path("", SendGridMailViewSet.as_view(dict.fromkeys(("get", "post", "put", "patch", "delete"), "absent"))),
]
