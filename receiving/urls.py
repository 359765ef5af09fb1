from django.urls import path

from receiving.api.downloads import download
from receiving.forwarding.pages import forward_target

urlpatterns = [
    path("inbound/forward/<str:token>", forward_target, name="forward-target"),
    path("inbound/<str:token>", download, name="received-download"),
]
