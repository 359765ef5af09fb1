from django.urls import path

from inbound.views import provider_events

urlpatterns = [
    path("<slug:provider>/tracking/", provider_events),
    path("mandrill/", provider_events, {"provider": "mandrill"}),
]
