from django.apps import AppConfig


class Events(AppConfig):
    name = "events"
