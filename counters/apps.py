from django.apps import AppConfig


class Counters(AppConfig):
    name = "counters"
