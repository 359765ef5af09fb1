"""URL configuration of the service."""

from django.apps import apps
from django.contrib import admin
from django.urls import include, path
from django.urls.resolvers import URLPattern, URLResolver
from django.views.generic import RedirectView

from config import health, metrics
from console.dashboard.auth.oidc.backchannel import backchannel_logout
from console.dashboard.site import dashboard_site
from console.dashboard.texts.staff_labels import translate_labels
from core.api.exception_handler import bad_request, forbidden, not_found, server_error
from domains.reports.views import receive_tls_report
from emails.api.attachments import download_attachment
from interfaces.tracking import host_views

# At the start of each process, the pages would add 11 MB to the workers (docs/decisions/0259).
admin.autodiscover()
translate_labels(model for model in apps.get_models() if admin.site.is_registered(model))

urlpatterns: list[URLPattern | URLResolver] = [
    # Busiest first: Django tries the patterns in order.
    path("v1/", include("emails.api.urls")),
    path("v1/", include("core.api.urls")),
    path("v1/", include("core.workspaces.api.urls")),
    path("v1/", include("domains.urls")),
    path("v1/", include("streams.urls")),
    path("v1/", include("templates_app.urls")),
    path("v1/", include("suppressions.urls")),
    path("v1/", include("webhooks.urls")),
    path("v1/", include("alerts.urls")),
    path("v1/", include("events.api.urls")),
    path("v1/", include("receiving.api.urls")),
    path("v1/", include("console.privacy.urls")),
    path("v1/admin/", include("console.provisioning.urls")),
    path("compat/", include("interfaces.compat.urls")),
    path("", include("interfaces.tracking.urls")),
    path("", include("receiving.urls")),
    path("attachments/<str:token>", download_attachment, name="sent-attachment"),
    path("reports/tls/<str:token>", receive_tls_report),
    path("anymail/", include("interfaces.inbound.urls")),
    path("v1/", include("analytics.urls")),
    path("", include("console.documentation.urls")),
    path("", RedirectView.as_view(pattern_name="dashboard:index")),
    path("dashboard", RedirectView.as_view(pattern_name="dashboard:index")),
    path("dashboard/", dashboard_site.urls),
    path("oidc/backchannel", backchannel_logout),
    path("admin", RedirectView.as_view(pattern_name="admin:index")),
    path("admin/", admin.site.urls),
    path("healthz", health.healthz),
    path("servingz", health.servingz),
    path("readyz", health.readyz),
    path("metrics", metrics.metrics),
    path("internal/tls", host_views.may_have_certificate),
]

handler400 = bad_request
handler403 = forbidden
handler404 = not_found
handler500 = server_error
