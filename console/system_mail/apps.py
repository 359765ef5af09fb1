from django.apps import AppConfig


class SystemMailConfig(AppConfig):
    name = "console.system_mail"
    verbose_name = "System email"

    def ready(self) -> None:
        # Connects the signal receivers.
        from console.system_mail import forward_confirmations, transport_notices, workspace_emails  # noqa: F401, PLC0415
