from django.urls import path

from receiving.api.downloads import download

urlpatterns = [path("inbound/<str:token>", download, name="received-download")]
