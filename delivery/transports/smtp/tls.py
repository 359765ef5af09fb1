"""TLS towards mail hosts: one context per process and kind, since making one takes 18 ms."""

import functools
import ssl
from enum import Enum


class Tls(Enum):
    """How much a host is asked for.

    opportunistic: what it offers, whoever it is, in clear where that fails (RFC 7435): any TLS keeps
    listeners out, and a host whose certificate is wrong would otherwise get the same mail in clear.
    required and implicit: a certificate that holds for the name, or nothing is sent.
    """

    NONE = "none"
    OPPORTUNISTIC = "opportunistic"
    REQUIRED = "required"
    IMPLICIT = "implicit"

    @property
    def is_mandatory(self) -> bool:
        return self in (Tls.REQUIRED, Tls.IMPLICIT)


@functools.cache
def verifying_context() -> ssl.SSLContext:
    """Return the context that believes the system's authorities and checks names."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


@functools.cache
def opportunistic_context() -> ssl.SSLContext:
    """Return the context that takes any certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def context_for(tls: Tls) -> ssl.SSLContext:
    return verifying_context() if tls.is_mandatory else opportunistic_context()
