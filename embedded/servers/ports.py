"""Find free ports on the loopback interface."""

import random
import socket

from embedded.errors import CannotStart

# Below 32768, where Linux begins to hand out ports for outgoing connections: a server that
# died can come back on its port.
RANGE = range(20_000, 32_000)


def is_free(port: int) -> bool:
    """Say whether a server could listen on 127.0.0.1:port.

    Raises PermissionError where only root may.
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
    """Return ports that nobody listens on. Another process may still take one first."""
    tried = random.sample(RANGE, k=200)
    free = [port for port in tried if is_free(port)][:count]
    if len(free) < count:
        raise CannotStart("No free port was found between 20000 and 32000 on 127.0.0.1.")
    return free
