"""Listening sockets of the SMTP servers: several addresses, and errors that explain themselves."""

import socket

import pytest

from core.lib.network.listening import CannotListen, close_sockets, open_sockets, show_addresses
from tests.rows import each
from tests.stack.stack import free_port


def test_ipv4_and_ipv6_have_a_socket_each_on_the_same_port():
    port = free_port()
    sockets = open_sockets("127.0.0.1, ::1", port, setting="INBOUND_HOST")
    assert show_addresses(sockets) == f"127.0.0.1:{port}, [::1]:{port}"
    for host, one in zip(("127.0.0.1", "::1"), sockets, strict=True):
        with socket.create_connection((host, port)), one.accept()[0] as accepted:
            assert accepted.getpeername()[0] == host
    close_sockets(sockets)


@each("other", ["127.0.0.1", "0.0.0.0"])
def test_a_port_of_another_program_is_explained_and_leaves_no_socket(other):
    with socket.create_server((other, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CannotListen, match=f"another program listens there.*sport = :{port}.*set INBOUND_PORT"):
            open_sockets("::1,0.0.0.0", port, setting="INBOUND_PORT")
    # The first address is free again, too.
    close_sockets(open_sockets("::1,0.0.0.0", port, setting="INBOUND_PORT"))


def test_an_address_of_another_machine_is_explained():
    with pytest.raises(CannotListen, match=r"192\.0\.2\.1:\d+: this machine does not have the address"):
        open_sockets("192.0.2.1", free_port(), setting="INBOUND_HOST")
