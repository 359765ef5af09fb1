from django.apps import AppConfig


class SuppressionsConfig(AppConfig):
    name = "suppressions"
