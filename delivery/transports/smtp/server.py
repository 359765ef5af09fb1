"""Whom a session talks to, and how long it waits."""

import ssl
from dataclasses import dataclass

from delivery.transports.smtp.login import Login
from delivery.transports.smtp.tls import Tls


@dataclass(frozen=True)
class Timeouts:
    """Seconds, by RFC 5321, section 4.5.3.2.

    whole: for one attempt with all the hosts that it tries; a host that drips in time at every step ends there.
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
    whole: float = 1200.0


RFC_5321 = Timeouts()


@dataclass(frozen=True)
class Server:
    """Where to connect, under which name, and how.

    address: a host name, or the literal that a guard has passed. name: for SNI and the certificate.
    notify: what DSNs (RFC 3461) to ask for where they are offered.
    """

    address: str
    port: int
    name: str
    ehlo_name: str
    tls: Tls = Tls.OPPORTUNISTIC
    login: Login | None = None
    context: ssl.SSLContext | None = None
    notify: str = "FAILURE,DELAY"
