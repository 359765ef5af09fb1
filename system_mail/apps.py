from django.apps import AppConfig


class SystemMail(AppConfig):
    name = "system_mail"
    verbose_name = "Mail of the service itself"
