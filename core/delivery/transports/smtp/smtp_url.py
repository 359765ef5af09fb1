"""SMTP relay URL, the setting `SMTP_URL`: smtp://user:pass@host:587, smtps://…, ?tls=required|opportunistic|none."""

from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote, urlsplit

from core.delivery.transports.smtp.login import Login
from core.delivery.transports.smtp.tls import TlsMode

PORTS = {"smtp": 587, "smtps": 465}
TLS_MODES = {tls.value: tls for tls in (TlsMode.NONE, TlsMode.OPPORTUNISTIC, TlsMode.REQUIRED)}


class InvalidSmtpUrl(ValueError):
    """Raised for an invalid URL, with a message explaining how to fix it; it never contains the password."""


@dataclass(frozen=True)
class RelayUrl:
    host: str
    port: int
    tls: TlsMode
    login: Login | None = None


def parse_smtp_url(url: str) -> RelayUrl:
    """Return a parsed relay URL. Raises InvalidSmtpUrl."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise InvalidSmtpUrl("The host or the port is invalid; write smtp://user:password@host:587.") from error
    if parts.scheme not in PORTS:
        raise InvalidSmtpUrl("The URL must begin with smtp:// or smtps://.")
    if not parts.hostname:
        raise InvalidSmtpUrl("The URL has no host; write smtp://user:password@host:587.")
    if parts.path not in ("", "/") or parts.fragment:
        raise InvalidSmtpUrl(
            "Only ?tls= may follow the host and the port. Encode / ? # and @ in a password (%2F %3F %23 %40)."
        )
    login = _login(parts.username, parts.password)
    tls = _tls(parts.scheme, dict(parse_qsl(parts.query, keep_blank_values=True)), login)
    return RelayUrl(parts.hostname, port or PORTS[parts.scheme], tls, login)


def _login(username: str | None, password: str | None) -> Login | None:
    if not username and not password:
        return None
    if not username or not password:
        raise InvalidSmtpUrl("A login needs both a user and a password: smtp://user:password@host.")
    return Login(unquote(username), unquote(password))


def _tls(scheme: str, query: dict[str, str], login: Login | None) -> TlsMode:
    if unknown := query.keys() - {"tls"}:
        raise InvalidSmtpUrl(f"{min(unknown)!r} is not supported; the only parameter is ?tls=.")
    wanted = query.get("tls")
    if wanted is not None and wanted not in TLS_MODES:
        raise InvalidSmtpUrl(f"tls must be one of {', '.join(TLS_MODES)}.")
    if scheme == "smtps":
        if wanted in ("none", "opportunistic"):
            raise InvalidSmtpUrl("smtps:// is encrypted from the first byte; omit ?tls=.")
        return TlsMode.IMPLICIT
    if login and wanted in ("none", "opportunistic"):
        raise InvalidSmtpUrl("A password is never sent without TLS: omit ?tls= or the login.")
    return TLS_MODES[wanted or ("required" if login else "opportunistic")]
