"""URLs of the links in emails. `path` also matches tokens that a mail client has damaged."""

from django.urls import path

from interfaces.tracking import views

urlpatterns = [
    path("t/o/<path:token>", views.pixel),
    path("t/c/<path:token>", views.click),
    path("t/page.css", views.style),
    path("u/<path:token>", views.unsubscribe),
    path("p/<path:token>", views.preferences),
]
