from django.apps import AppConfig


class Templates(AppConfig):
    name = "templates_app"
