from django.apps import AppConfig


class SystemMailConfig(AppConfig):
    name = "system_mail"
    verbose_name = "System email"

    def ready(self) -> None:
        # Connects the signal receiver.
        from system_mail import workspace_emails  # noqa: F401, PLC0415
