"""Graceful stop of the web server: no request is refused or reset because of it (docs/decisions/0091).

On SIGTERM, `/servingz` fails first, so that the reverse proxy chooses other servers. New connections are accepted until
it has noticed. Then the kernel stops opening connections, the processes answer those in the queue, and the socket is
closed: closing it earlier would reset the connections in its queue.
"""

import ctypes
import mmap
import queue
import signal
import socket
import struct
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from django.conf import settings

RUNNING, WAITING_FOR_PROXY, STOPPING = range(3)
# Shared by the processes of the server, which are forked after this module is loaded.
_stage = mmap.mmap(-1, 1)

# Time for clients that are opening a connection to send their request.
SETTLE_SECONDS = 0.5
# Requests in the queue are answered within WEB_MAX_WAIT_MS, most of them with 503; this covers slow ones.
MAX_DRAIN_SECONDS = 20.0
POLL_SECONDS = 0.02

# Linux: struct tcp_info of a listening socket has the length of its queue in tcpi_unacked, at this offset.
UNACKED_OFFSET = 24
SO_ATTACH_FILTER = 26
# A classic BPF program (Linux: Documentation/networking/filter.rst): accept a segment unless SYN is its only flag of
# SYN and ACK. Each instruction: code, jumps if true and if false, constant.
REFUSE_NEW = ((0x30, 0, 0, 13), (0x54, 0, 0, 0x12), (0x15, 0, 1, 0x02), (0x06, 0, 0, 0), (0x06, 0, 0, 0xFFFFFFFF))


def is_stopping() -> bool:
    return _stage[0] != RUNNING


def stage() -> int:
    """Return the stage of the stop: RUNNING, WAITING_FOR_PROXY or STOPPING."""
    return _stage[0]


def stop_gracefully(arbiter: Any) -> None:
    """Handle SIGTERM in gunicorn's arbiter. Raises StopIteration, for the arbiter to stop its processes."""
    _stage[0] = WAITING_FOR_PROXY
    _wait_for_proxy(arbiter.SIG_QUEUE)
    # Sockets of systemd or of a new arbiter stay open, so their connections are not reset.
    if arbiter.reexec_pid == arbiter.master_pid == 0 and not arbiter.systemd:
        _answer_queue([listener.sock for listener in arbiter.LISTENERS])
    _stage[0] = STOPPING
    raise StopIteration


def _wait_for_proxy(signals: "queue.SimpleQueue[int]") -> None:
    """Wait for WEB_STOP_DELAY seconds; SIGINT or SIGQUIT ends the wait."""
    deadline = time.monotonic() + settings.WEB_STOP_DELAY
    while (remaining := deadline - time.monotonic()) > 0:
        with suppress(queue.Empty):
            number = signals.get(timeout=remaining)
            if number in {signal.SIGINT, signal.SIGQUIT}:
                signals.put(number)
                return


def _answer_queue(listeners: Iterable[socket.socket]) -> None:
    """Let the processes accept all connections of the queue, while no new ones are opened."""
    for listener in listeners:
        _refuse_new_connections(listener)
    started = time.monotonic()
    time.sleep(SETTLE_SECONDS)
    while any(map(_queue_length, listeners)) and time.monotonic() - started < MAX_DRAIN_SECONDS:
        time.sleep(POLL_SECONDS)


def _refuse_new_connections(listener: socket.socket) -> None:
    """Ignore new connections: clients repeat the attempt after a second, when the socket is closed and refuses it."""
    if not hasattr(socket, "TCP_DEFER_ACCEPT") or listener.family not in {socket.AF_INET, socket.AF_INET6}:
        return
    # A connection without data would stay invisible, and be reset.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_DEFER_ACCEPT, 0)
    program = b"".join(struct.pack("=HBBI", *instruction) for instruction in REFUSE_NEW)
    buffer = ctypes.create_string_buffer(program, len(program))
    # Some kernels refuse a filter to unprivileged processes. The stop must go on; new connections may then be reset.
    with suppress(PermissionError):
        listener.setsockopt(
            socket.SOL_SOCKET, SO_ATTACH_FILTER, struct.pack("HP", len(REFUSE_NEW), ctypes.addressof(buffer))
        )


def _queue_length(listener: socket.socket) -> int:
    if not hasattr(socket, "TCP_INFO") or listener.family not in {socket.AF_INET, socket.AF_INET6}:
        return 0
    tcp_info = listener.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, UNACKED_OFFSET + 4)
    (length,) = struct.unpack_from("=I", tcp_info, UNACKED_OFFSET)
    return int(length)
