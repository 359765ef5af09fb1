"""SMTP AUTH (RFC 4954): the responses of each mechanism. Used only over TLS."""

import hmac
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Login:
    username: str
    password: str = field(repr=False)


def _plain(login: Login, challenge: bytes) -> bytes:
    """Return the PLAIN response (RFC 4616)."""
    return f"\0{login.username}\0{login.password}".encode()


def _username(login: Login, challenge: bytes) -> bytes:
    return login.username.encode()


def _password(login: Login, challenge: bytes) -> bytes:
    return login.password.encode()


def _digest(login: Login, challenge: bytes) -> bytes:
    """Return the CRAM-MD5 response (RFC 2195)."""
    return f"{login.username} {hmac.new(login.password.encode(), challenge, 'md5').hexdigest()}".encode()


# Responses to the challenges of each mechanism. The first that the host offers is used: over TLS all are equally safe.
# LOGIN has no standard; hosts ask for the user name and then the password, in any wording.
MECHANISMS: dict[str, tuple[Callable[[Login, bytes], bytes], ...]] = {
    "PLAIN": (_plain,),
    "LOGIN": (_username, _password),
    "CRAM-MD5": (_digest,),
}
