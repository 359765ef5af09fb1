from django.apps import AppConfig


class Api(AppConfig):
    name = "api"
