from django.apps import AppConfig


class Provisioning(AppConfig):
    name = "provisioning"
