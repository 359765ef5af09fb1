from django.apps import AppConfig


class Dashboard(AppConfig):
    name = "dashboard"
