"""A network namespace with loopback and a route to nowhere, and a count of the connections that begin in it."""

import ctypes
import fcntl
import os
import socket
import struct
import subprocess
import threading
from collections import Counter
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NamedTuple, Self

OUTSIDE = "outside"
# Linux: if_tun.h, if_ether.h, if_packet.h, filter.h.
TUNSETIFF, IFF_TUN_WITHOUT_HEADER = 0x400454CA, 0x1001
ETH_P_ALL, SOL_PACKET, PACKET_STATISTICS, SO_ATTACH_FILTER, SO_RCVBUFFORCE = 0x0003, 263, 6, 26, 33
BUFFER_BYTES = 32 * 1024 * 1024
TCP, UDP = 6, 17
LOAD_BYTE, LOAD_BYTE_INDEXED, LOAD_HEADER_LENGTH = 0x30, 0x50, 0xB1
AND, JUMP_IF_EQUAL, RETURN = 0x54, 0x15, 0x06
PACKET_TYPE, OUTGOING = 0xFFFFF004, 4
SYN, SYN_OR_ACK = 0x02, 0x12
# Accepts outgoing packets that begin a TCP connection, and all that are not TCP: (code, if true, if false, value).
FILTER = (
    (LOAD_BYTE, 0, 0, PACKET_TYPE), (JUMP_IF_EQUAL, 0, 15, OUTGOING),
    (LOAD_BYTE, 0, 0, 0), (AND, 0, 0, 0xF0), (JUMP_IF_EQUAL, 0, 5, 0x40),
    (LOAD_BYTE, 0, 0, 9), (JUMP_IF_EQUAL, 0, 9, TCP), (LOAD_HEADER_LENGTH, 0, 0, 0),
    (LOAD_BYTE_INDEXED, 0, 0, 13), (JUMP_IF_EQUAL, 4, 4, 0xFFFFFFFF),
    (JUMP_IF_EQUAL, 0, 5, 0x60), (LOAD_BYTE, 0, 0, 6), (JUMP_IF_EQUAL, 0, 3, TCP),
    (LOAD_BYTE, 0, 0, 53), (AND, 0, 0, SYN_OR_ACK), (JUMP_IF_EQUAL, 0, 1, SYN),
    (RETURN, 0, 0, 65_535), (RETURN, 0, 0, 0),
)  # fmt: skip


class Contact(NamedTuple):
    """A new connection or a datagram. protocol: tcp, udp, or a number with the ports 0."""

    interface: str
    protocol: str
    source: tuple[str, int]
    target: tuple[str, int]


def prepare_network() -> int:
    """Set up this process's namespace: loopback, and a default route to an interface whose packets nobody answers.

    Returns the file descriptor that keeps the interface.
    """
    tun = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(tun, TUNSETIFF, struct.pack("16sH22x", OUTSIDE.encode(), IFF_TUN_WITHOUT_HEADER))
    # The kernel would look for routers.
    Path(f"/proc/sys/net/ipv6/conf/{OUTSIDE}/disable_ipv6").write_text("1")
    for command in (
        ("link", "set", "lo", "up"),
        ("address", "add", "10.77.0.1/24", "dev", OUTSIDE),
        ("link", "set", OUTSIDE, "up"),
        ("route", "add", "default", "dev", OUTSIDE),
    ):
        subprocess.run(["ip", *command], check=True)
    return tun


class PacketCounter:
    """Counts what begins on all interfaces of the namespace, within the block."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
        program = b"".join(struct.pack("HBBI", *row) for row in FILTER)
        self._program = ctypes.create_string_buffer(program)
        attached = struct.pack("HP", len(FILTER), ctypes.addressof(self._program))
        self._socket.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, attached)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
        self._socket.settimeout(0.1)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._is_stopped = threading.Event()
        self.contacts = Counter[Contact]()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_stopped.set()
        self._thread.join()
        self._socket.close()

    @property
    def dropped(self) -> int:
        """The number of packets that were not read in time, since it was last asked for."""
        _, dropped = struct.unpack("II", self._socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
        return int(dropped)

    def _run(self) -> None:
        while not self._is_stopped.is_set():
            try:
                packet, place = self._socket.recvfrom(128)
            except TimeoutError:
                continue
            self.contacts[read_packet(packet, interface=place[0])] += 1


def read_packet(packet: bytes, *, interface: str) -> Contact:
    """Return what an IP packet contacts."""
    is_old = packet[0] >> 4 == 4
    number = packet[9] if is_old else packet[6]
    source, target = (packet[12:16], packet[16:20]) if is_old else (packet[8:24], packet[24:40])
    start = 4 * (packet[0] & 0x0F) if is_old else 40
    ports = struct.unpack("!HH", packet[start : start + 4]) if number in (TCP, UDP) else (0, 0)
    protocol = {TCP: "tcp", UDP: "udp"}.get(number, str(number))
    sender, receiver = (str(ip_address(address)) for address in (source, target))
    return Contact(interface, protocol, (sender, ports[0]), (receiver, ports[1]))


def find_others(contacts: Counter[Contact], *, known: set[tuple[str, int]]) -> list[Any]:
    """Return the contacts whose target is not known, as JSON: protocol, address and port.

    known: addresses with ports, on loopback. An answer to a datagram comes from one of them. ICMP on loopback follows a
    datagram, which counts.
    """
    return sorted(
        {
            (one.protocol, *one.target)
            for one in contacts
            if one.interface != "lo" or (one.protocol in {"tcp", "udp"} and not _is_known(one, known))
        }
    )


def _is_known(one: Contact, known: set[tuple[str, int]]) -> bool:
    return one.target in known or (one.protocol == "udp" and one.source in known)
