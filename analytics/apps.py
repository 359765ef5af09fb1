from django.apps import AppConfig


class Analytics(AppConfig):
    name = "analytics"
