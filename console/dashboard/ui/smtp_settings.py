"""The settings that a program needs to send over SMTP, shown beside an API key."""

from dataclasses import dataclass
from urllib.parse import urlsplit

from django.conf import settings
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

DEFAULT_PORT = 587


@dataclass(frozen=True)
class SmtpSettings:
    """Host, ports and encryption; the user name is arbitrary, and the password is the API key."""

    host: str
    ports: str
    encryption: str | Promise


def smtp_settings() -> SmtpSettings:
    """Return the settings for this service: the host is that of PUBLIC_URL."""
    host = urlsplit(settings.PUBLIC_URL).hostname or ""
    if not settings.SUBMISSION_TLS_CERT:
        return SmtpSettings(host, _joined(settings.SUBMISSION_PORTS), _("None (this machine only)"))
    return SmtpSettings(host, _joined([*settings.SUBMISSION_PORTS, *settings.SUBMISSION_TLS_PORTS]), _encryption())


def smtp_sample_values() -> dict[str, object]:
    """Return the values of code samples that send over SMTP. Without a port of this service, that of RFC 6409."""
    has_tls = bool(settings.SUBMISSION_TLS_CERT)
    return {
        "host": smtp_settings().host,
        "port": settings.SUBMISSION_PORTS[0] if settings.SUBMISSION_PORTS else DEFAULT_PORT,
        "has_tls": has_tls,
        "tls_option": " --ssl-reqd" if has_tls else "",
    }


def _encryption() -> str:
    return f"STARTTLS ({_joined(settings.SUBMISSION_PORTS)}), TLS ({_joined(settings.SUBMISSION_TLS_PORTS)})"


def _joined(ports: list[int]) -> str:
    return ", ".join(map(str, ports))
