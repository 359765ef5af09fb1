from django.urls import path

from interfaces.inbound.views import named_events, provider_events

urlpatterns = [
    path("<slug:provider>/tracking/", provider_events),
    path("mandrill/", provider_events, {"provider": "mandrill"}),
    path("<slug:transport>/<slug:provider>/tracking/", named_events),
    path("<slug:transport>/mandrill/", named_events, {"provider": "mandrill"}),
]
