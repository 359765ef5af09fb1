"""Paths of Resend's API."""

from django.urls import path, re_path

from compat.resend.views import ResendEmailViewSet

urlpatterns = [
    path("emails", ResendEmailViewSet.as_view({"post": "send", "get": "list"})),
    path("emails/batch", ResendEmailViewSet.as_view({"post": "batch"})),
    # Not ids.
    re_path("^emails/(metrics|receiving)$", ResendEmailViewSet.as_view({"get": "absent"})),
    path("emails/<str:pk>", ResendEmailViewSet.as_view({"get": "retrieve", "patch": "update"})),
    path("emails/<str:pk>/cancel", ResendEmailViewSet.as_view({"post": "cancel"})),
    path("emails/<str:pk>/attachments", ResendEmailViewSet.as_view({"get": "attachments"})),
    re_path("", ResendEmailViewSet.as_view(dict.fromkeys(("get", "post", "put", "patch", "delete"), "absent"))),
]
