"""Free ports on the loopback interface."""

import random
import socket
import sys

from tools.embedded.errors import CannotStart

# Below 32768, where Linux's ephemeral ports begin, so that a crashed server can restart on its port.
RANGE = range(20_000, 32_000)
# Ports of this process → the socket whose abstract name keeps other launchers from them.
_reservations: dict[int, socket.socket] = {}


def is_free(port: int) -> bool:
    """Return whether a server can listen on 127.0.0.1:port.

    Raises PermissionError when the port requires root.
    """
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except PermissionError:
            raise
        except OSError:
            return False
    return True


def reserve_port(port: int) -> bool:
    """Reserve a port until this process ends; return whether it is free and no other launcher has reserved it.

    Between the choice and the start of the service lie the migrations, in which a second launcher would find the port
    free. The kernel removes an abstract name when the process ends, and each network namespace has its own ones.
    Only Linux has them.
    """
    if port in _reservations:
        return True
    if not is_free(port):
        return False
    if sys.platform != "linux":
        return True
    reservation = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        reservation.bind(f"\0postrider-port-{port}")
    except OSError:
        reservation.close()
        return False
    _reservations[port] = reservation
    return True


def choose_ports(count: int) -> list[int]:
    """Return free ports. Another process may still take one first."""
    candidates = random.sample(RANGE, k=200)
    free = [port for port in candidates if is_free(port)][:count]
    if len(free) < count:
        raise CannotStart("No free port between 20000 and 32000 was found on 127.0.0.1.")
    return free
