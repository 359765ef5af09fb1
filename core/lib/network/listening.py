"""Listening sockets of the SMTP servers (docs/decisions/0255)."""

import errno
import socket
from collections.abc import Sequence

BACKLOG = 1024
# Explanations of the errors of bind or listen, by their numbers.
REASONS = {
    errno.EADDRINUSE: "another program listens there, such as exim4 or Postfix on port 25. Stop it and remove it "
    "(`ss -ltnp 'sport = :{port}'` names it), or set {setting}.",
    errno.EACCES: "ports below 1024 need root or the capability CAP_NET_BIND_SERVICE. Set {setting} to another port, "
    "or grant it.",
    errno.EADDRNOTAVAIL: "this machine does not have the address. Correct {setting}.",
}


class CannotListen(OSError):
    """Raised when a port cannot be used; the message explains how to fix it."""


def open_sockets(hosts: str, port: int, *, setting: str, is_shared: bool = False) -> list[socket.socket]:
    """Listen on a port of each address.

    hosts: comma-separated addresses, such as `0.0.0.0,::` for IPv4 and IPv6.
    setting: named in the error.
    is_shared: whether other sockets with the same option may listen, too (SO_REUSEPORT).
    Raises CannotListen.
    """
    opened: list[socket.socket] = []
    try:
        for host in filter(None, map(str.strip, hosts.split(","))):
            one = _listen(host, port, setting=setting, is_shared=is_shared)
            opened.append(one)
    except CannotListen:
        close_sockets(opened)
        raise
    return opened


def close_sockets(sockets: Sequence[socket.socket]) -> None:
    for one in sockets:
        one.close()


def show_addresses(sockets: Sequence[socket.socket]) -> str:
    """Return the addresses of sockets, such as `0.0.0.0:25, [::]:25`."""
    return ", ".join(_show(*one.getsockname()[:2]) for one in sockets)


def _listen(host: str, port: int, *, setting: str, is_shared: bool) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG, reuse_port=is_shared)
    except OSError as error:
        reason = REASONS.get(error.errno or 0, f"{error.strerror or error}. Correct {{setting}}.")
        explanation = reason.format(port=port, setting=setting)
        raise CannotListen(f"Cannot listen on {_show(host, port)}: {explanation}") from error


def _show(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
