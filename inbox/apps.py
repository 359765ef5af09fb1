from django.apps import AppConfig


class Inbox(AppConfig):
    name = "inbox"
