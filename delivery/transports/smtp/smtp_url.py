"""`SMTP_URL`: smtp://user:pass@host:587, smtps://…, ?tls=required|opportunistic|none."""

from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote, urlsplit

from delivery.transports.smtp.login import Login
from delivery.transports.smtp.tls import Tls

PORTS = {"smtp": 587, "smtps": 465}
CHOICES = {tls.value: tls for tls in (Tls.NONE, Tls.OPPORTUNISTIC, Tls.REQUIRED)}


class BadSmtpUrl(ValueError):
    """Raised with a sentence that says what to change; it never holds the password."""


@dataclass(frozen=True)
class RelayUrl:
    host: str
    port: int
    tls: Tls
    login: Login | None = None


def parse_smtp_url(url: str) -> RelayUrl:
    """Read a relay's URL. Raises BadSmtpUrl."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise BadSmtpUrl("The host or the port is not readable; write smtp://user:password@host:587.") from error
    if parts.scheme not in PORTS:
        raise BadSmtpUrl("The URL begins with smtp:// or smtps://.")
    if not parts.hostname:
        raise BadSmtpUrl("The URL names no host; write smtp://user:password@host:587.")
    if parts.path not in ("", "/") or parts.fragment:
        raise BadSmtpUrl(
            "Nothing follows the host and the port but ?tls=. Encode / ? # and @ in a password (%2F %3F %23 %40)."
        )
    login = _login(parts.username, parts.password)
    tls = _tls(parts.scheme, dict(parse_qsl(parts.query, keep_blank_values=True)), login)
    return RelayUrl(parts.hostname, port or PORTS[parts.scheme], tls, login)


def _login(username: str | None, password: str | None) -> Login | None:
    if not username and not password:
        return None
    if not username or not password:
        raise BadSmtpUrl("A login has both a user and a password: smtp://user:password@host.")
    return Login(unquote(username), unquote(password))


def _tls(scheme: str, query: dict[str, str], login: Login | None) -> Tls:
    if unknown := query.keys() - {"tls"}:
        raise BadSmtpUrl(f"{min(unknown)!r} is not known here; ?tls= is all there is.")
    wanted = query.get("tls")
    if wanted is not None and wanted not in CHOICES:
        raise BadSmtpUrl(f"tls is one of {', '.join(CHOICES)}.")
    if scheme == "smtps":
        if wanted in ("none", "opportunistic"):
            raise BadSmtpUrl("smtps:// is encrypted from the first byte; leave ?tls= out.")
        return Tls.IMPLICIT
    if login and wanted in ("none", "opportunistic"):
        raise BadSmtpUrl("A password is never sent without TLS: leave ?tls= out, or the login.")
    return CHOICES[wanted or ("required" if login else "opportunistic")]
