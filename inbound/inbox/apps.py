from django.apps import AppConfig


class InboxConfig(AppConfig):
    name = "inbound.inbox"
    label = "inbox"
