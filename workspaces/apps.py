from django.apps import AppConfig


class Workspaces(AppConfig):
    name = "workspaces"
