"""Paths of the compatibility endpoints, each under its provider's name."""

from django.urls import include, path

urlpatterns = [
    path("resend/", include("compat.resend.urls")),
    path("sendgrid/", include("compat.sendgrid.urls")),
    path("postmark/", include("compat.postmark.urls")),
]
