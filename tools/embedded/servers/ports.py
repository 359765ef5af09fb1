"""Free ports on the loopback interface."""

import random
import socket

from tools.embedded.errors import CannotStart

# Below 32768, where Linux's ephemeral ports begin, so that a crashed server can restart on its port.
RANGE = range(20_000, 32_000)


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


def choose_ports(count: int) -> list[int]:
    """Return free ports. Another process may still take one first."""
    candidates = random.sample(RANGE, k=200)
    free = [port for port in candidates if is_free(port)][:count]
    if len(free) < count:
        raise CannotStart("No free port between 20000 and 32000 was found on 127.0.0.1.")
    return free
