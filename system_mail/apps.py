from django.apps import AppConfig


class SystemMailConfig(AppConfig):
    name = "system_mail"
    verbose_name = "System email"
