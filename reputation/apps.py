from django.apps import AppConfig


class Reputation(AppConfig):
    name = "reputation"
