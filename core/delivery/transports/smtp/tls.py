"""TLS modes and contexts for mail hosts. One context per process and kind: creating one takes 18 ms."""

import functools
import ssl
from enum import Enum


class TlsMode(Enum):
    """How much TLS a session requires.

    opportunistic: TLS with any certificate, plaintext if it fails (RFC 7435). Any TLS stops eavesdropping, and a
    host with an invalid certificate would otherwise get the same mail in plaintext.
    required and implicit: TLS with a certificate valid for the name, or no mail is sent.
    """

    NONE = "none"
    OPPORTUNISTIC = "opportunistic"
    REQUIRED = "required"
    IMPLICIT = "implicit"

    def for_message(self, *, requires_tls: bool) -> "TlsMode":
        """Return the mode for a message: REQUIRED instead of a weaker one if the message requires TLS."""
        return TlsMode.REQUIRED if requires_tls and not self.is_mandatory else self

    @property
    def is_mandatory(self) -> bool:
        return self in (TlsMode.REQUIRED, TlsMode.IMPLICIT)


@functools.cache
def verifying_context() -> ssl.SSLContext:
    """Return the context that trusts the system's certificate authorities and checks host names."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


@functools.cache
def opportunistic_context() -> ssl.SSLContext:
    """Return the context that accepts any certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def context_for(tls: TlsMode) -> ssl.SSLContext:
    """Return the context for a TLS mode."""
    return verifying_context() if tls.is_mandatory else opportunistic_context()
