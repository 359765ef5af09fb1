"""SMTP AUTH (RFC 4954): what is said in each mechanism. Only ever called behind TLS."""

import hmac
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Login:
    username: str
    password: str = field(repr=False)


def _plain(login: Login, challenge: bytes) -> bytes:
    """RFC 4616."""
    return f"\0{login.username}\0{login.password}".encode()


def _username(login: Login, challenge: bytes) -> bytes:
    return login.username.encode()


def _password(login: Login, challenge: bytes) -> bytes:
    return login.password.encode()


def _digest(login: Login, challenge: bytes) -> bytes:
    """RFC 2195."""
    return f"{login.username} {hmac.new(login.password.encode(), challenge, 'md5').hexdigest()}".encode()


# What answers each challenge. The first mechanism that the host offers is used: behind TLS all are as safe.
# LOGIN has no standard; hosts ask for the name and then for the password, in any words.
MECHANISMS: dict[str, tuple[Callable[[Login, bytes], bytes], ...]] = {
    "PLAIN": (_plain,),
    "LOGIN": (_username, _password),
    "CRAM-MD5": (_digest,),
}
