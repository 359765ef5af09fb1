from django.apps import AppConfig


class Emails(AppConfig):
    name = "emails"
