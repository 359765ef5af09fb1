"""TLS modes and contexts for mail hosts. One context per process and kind: creating one takes 18 ms."""

import functools
import ssl
from collections.abc import Sequence
from enum import Enum
from typing import Any


class TlsMode(Enum):
    """How much TLS a session requires.

    opportunistic: TLS with any certificate, plaintext if it fails (RFC 7435). Any TLS stops eavesdropping, and a
    host with an invalid certificate would otherwise get the same mail in plaintext.
    required and implicit: TLS with a certificate valid for the name, or no mail is sent.
    dane: TLS with a certificate that matches the DANE records of the host, or no mail is sent.
    testing: as required; if that fails, as opportunistic.
    """

    NONE = "none"
    OPPORTUNISTIC = "opportunistic"
    REQUIRED = "required"
    IMPLICIT = "implicit"
    DANE = "dane"
    TESTING = "testing"

    def for_message(self, *, requires_tls: bool) -> "TlsMode":
        """Return the mode for a message: REQUIRED instead of a weaker one if the message requires TLS."""
        return TlsMode.REQUIRED if requires_tls and not self.is_mandatory else self

    @property
    def is_mandatory(self) -> bool:
        return self in (TlsMode.REQUIRED, TlsMode.IMPLICIT, TlsMode.DANE)

    @property
    def may_need_authority(self) -> bool:
        """Return whether a session in this mode begins with a certificate of an authority."""
        return self.needs_authority or self is TlsMode.TESTING

    @property
    def needs_authority(self) -> bool:
        """Return whether a certificate authority must have signed the certificate of the host."""
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
    return verifying_context() if tls.needs_authority else opportunistic_context()


def peer_chain(secured: ssl.SSLObject) -> Sequence[bytes]:
    """Return the certificates that the other side sent, in DER, its own first; not verified in any way."""
    # Public as SSLObject.get_unverified_chain since Python 3.13; there, the certificates are in DER already.
    inner: Any = secured if hasattr(secured, "get_unverified_chain") else secured._sslobj  # type: ignore[attr-defined]  # noqa: SLF001
    chain = inner.get_unverified_chain() or ()
    return [one if isinstance(one, bytes) else ssl.PEM_cert_to_DER_cert(one.public_bytes()) for one in chain]
