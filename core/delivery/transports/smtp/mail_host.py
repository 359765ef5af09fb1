"""Mail host of a session: its address, name, TLS mode and login; and the timeouts of a session."""

import ssl
from dataclasses import dataclass

from core.delivery.bounces.replies import TlsPolicyKind, TlsResult
from core.delivery.transports.smtp.login import Login
from core.delivery.transports.smtp.tls import TlsMode
from core.delivery.transports.tls_policies.dane import DaneHost

TLS_REQUIRED = "The sending domain (tls), DELIVERY_TLS or SMTP_URL requires TLS with a valid certificate."


@dataclass(frozen=True)
class Timeouts:
    """Timeouts in seconds, from RFC 5321, section 4.5.3.2.

    total: the time for one attempt with every host that it tries; it ends a host that sends a byte at a time at every
    step.
    """

    connect: float = 30.0
    banner: float = 300.0
    ehlo: float = 300.0
    tls: float = 60.0
    login: float = 120.0
    envelope: float = 300.0
    data: float = 120.0
    block: float = 180.0
    dot: float = 600.0
    total: float = 1200.0


RFC_5321 = Timeouts()


@dataclass(frozen=True)
class MailHost:
    """The host of a session and how to connect to it.

    address: a host name, or an IP address that the guard has checked.
    name: the name for SNI and the certificate.
    notify: the DSNs (RFC 3461) to request from a host that offers them.
    source: the address to connect from.
    policy: the TLS policy that decides about it; None for a host of the settings.
    requirement: a sentence for the text of a failure, which says who requires TLS.
    dane: the records that the certificate must match, in the mode DANE.
    names: those that the certificate may have then.
    failure: the failure of the policy that does not prevent the session, for TLS reports.
    """

    address: str
    port: int
    name: str
    ehlo_name: str
    tls: TlsMode = TlsMode.OPPORTUNISTIC
    login: Login | None = None
    context: ssl.SSLContext | None = None
    notify: str = "FAILURE,DELAY"
    source: str | None = None
    policy: TlsPolicyKind | None = None
    requirement: str = TLS_REQUIRED
    dane: DaneHost | None = None
    names: tuple[str, ...] = ()
    failure: TlsResult | None = None

    @property
    def tls_name(self) -> str:
        """The name for SNI; DANE has records at the target of an alias (RFC 7672, section 2.2.2)."""
        return self.dane.base_domain if self.dane else self.name

    @property
    def is_verified(self) -> bool:
        """Whether a session that uses TLS has verified the host."""
        return self.tls.needs_authority or bool(self.tls is TlsMode.DANE and self.dane and self.dane.records)
