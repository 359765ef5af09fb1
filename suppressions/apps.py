from django.apps import AppConfig


class Suppressions(AppConfig):
    name = "suppressions"
