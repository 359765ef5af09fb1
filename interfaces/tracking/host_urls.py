"""URLs of tracking hosts: the links of emails, and the proof that this installation answers."""

from django.urls import include, path

from domains.record_checks.expected_host import PROOF_PATH
from interfaces.tracking import host_views

urlpatterns = [
    path("", include("interfaces.tracking.urls")),
    path(PROOF_PATH.removeprefix("/"), host_views.proof),
]

handler400 = handler403 = handler404 = host_views.not_served
handler500 = host_views.failed
