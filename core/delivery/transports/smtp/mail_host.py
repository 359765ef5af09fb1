"""Mail host of a session: its address, name, TLS mode and login; and the timeouts of a session."""

import ssl
from dataclasses import dataclass

from core.delivery.transports.smtp.login import Login
from core.delivery.transports.smtp.tls import TlsMode


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
