from django.apps import AppConfig


class SystemMailConfig(AppConfig):
    name = "console.system_mail"
    verbose_name = "System email"

    def ready(self) -> None:
        # Connects the signal receivers.
        from console.system_mail import (  # noqa: PLC0415
            forward_confirmations,  # noqa: F401
            source_notices,  # noqa: F401
            transport_notices,  # noqa: F401
            workspace_emails,  # noqa: F401
        )
        from console.system_mail.canary import returned  # noqa: F401, PLC0415
