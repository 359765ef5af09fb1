from django.apps import AppConfig


class Inbound(AppConfig):
    name = "inbound"
