from django.apps import AppConfig


class Domains(AppConfig):
    name = "domains"
