"""What the links in emails point to. Everything below a door is its own: also what some mail reader has mangled."""

from django.urls import path

from tracking import views

urlpatterns = [
    path("t/o/<path:token>", views.pixel),
    path("t/c/<path:token>", views.click),
    path("u/<path:token>", views.unsubscribe),
]
