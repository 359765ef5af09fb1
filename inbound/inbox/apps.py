from django.apps import AppConfig


class Inbox(AppConfig):
    name = "inbound.inbox"
    label = "inbox"
