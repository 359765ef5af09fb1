"""Paths of the compatibility endpoints, each under its provider's name."""

from django.urls import include, path

urlpatterns = [
    path("resend/", include("interfaces.compat.resend.urls")),
    path("sendgrid/", include("interfaces.compat.sendgrid.urls")),
    path("postmark/", include("interfaces.compat.postmark.urls")),
]
