"""A real name server on loopback, UDP and TCP, whose zones are a dictionary.

    with NameServer({"example.com": {"MX": ["10 mx.example.com."], "TXT": ['"v=spf1 -all"']}}) as server:
        resolver = Resolver([server.address])

A name with rows returns NODATA for other types, as does a name above one (an empty non-terminal); every other name is
NXDOMAIN. A CNAME is followed within the zones. A DnsFailure replaces the rows of a type or of a whole name: SERVFAIL,
REFUSED, SILENCE (no answer), GARBAGE (bytes that are not a message), TRUNCATED (over UDP; the rows for TCP go into
`server.over_tcp`). Answers about the names in `server.secure`, or about a name and type such as `example.com MX`, have
the AD bit, as those of a validating resolver about signed zones. Zones may be changed at any time; `server.questions`
lists the queries as (name, type, "udp" or "tcp").
"""

import contextlib
import socket
import threading
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Self

import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdatatype
import dns.rrset

TTL = 60
MAX_CNAME_CHAIN = 16


class DnsFailure(Enum):
    SERVFAIL = "servfail"
    REFUSED = "refused"
    SILENCE = "silence"
    GARBAGE = "garbage"
    TRUNCATED = "truncated"


SERVFAIL, REFUSED, SILENCE, GARBAGE, TRUNCATED = DnsFailure

Rows = Sequence[str] | DnsFailure
Zones = dict[str, dict[str, Rows] | DnsFailure]


class NameServer:
    """Serves from separate threads, so that event loops and blocking clients can query it."""

    def __init__(self, zones: Mapping[str, Any] | None = None, *, address: tuple[str, int] = ("127.0.0.1", 0)) -> None:
        self.zones: Zones = {_key(name): rows for name, rows in (zones or {}).items()}
        self.over_tcp: Zones = {}
        self.secure: set[str] = set()
        self.questions: list[tuple[str, str, str]] = []
        self._tcp, self._udp = _bound_pair(address)
        self.address: tuple[str, int] = self._udp.getsockname()

    def __enter__(self) -> Self:
        self._tcp.listen()
        self._threads = [threading.Thread(target=serve, daemon=True) for serve in (self._serve_udp, self._serve_tcp)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        # A thread blocked in a system call wakes up for a shutdown, not for a close.
        for sock in (self._udp, self._tcp):
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join()
        self._udp.close()
        self._tcp.close()

    def put(self, name: str, rows: dict[str, Rows] | DnsFailure) -> None:
        """Replace all rows of a name."""
        self.zones[_key(name)] = rows

    def remove(self, name: str) -> None:
        """Make the name NXDOMAIN."""
        self.zones.pop(_key(name), None)

    def count(self, name: str, kind: str) -> int:
        """Return the number of queries for a name and type."""
        return sum(asked[:2] == (_key(name), kind) for asked in self.questions)

    def _serve_udp(self) -> None:
        while True:
            try:
                data, client = self._udp.recvfrom(65_535)
            except OSError:
                return
            if not data:  # the shutdown
                return
            answer = self._answer(data, "udp")
            # The shutdown may have come meanwhile.
            with contextlib.suppress(BrokenPipeError):
                if answer:
                    self._udp.sendto(answer, client)

    def _serve_tcp(self) -> None:
        while True:
            try:
                connection, _ = self._tcp.accept()
            except OSError:
                return
            threading.Thread(target=self._serve_connection, args=[connection], daemon=True).start()

    def _serve_connection(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as stream:
            connection.settimeout(5)
            while size := stream.read(2):
                answer = self._answer(stream.read(int.from_bytes(size, "big")), "tcp")
                if answer:
                    connection.sendall(len(answer).to_bytes(2, "big") + answer)

    def _answer(self, data: bytes, protocol: str) -> bytes | None:
        try:
            query = dns.message.from_wire(data)
        except dns.exception.DNSException:
            return None
        question = query.question[0]
        name, kind = question.name.to_text().lower(), dns.rdatatype.to_text(question.rdtype)
        self.questions.append((_key(name), kind, protocol))
        response = dns.message.make_response(query)
        response.flags |= dns.flags.RA
        if {_key(name), f"{_key(name)} {kind}"} & self.secure and query.flags & dns.flags.AD:
            response.flags |= dns.flags.AD
        failure = self._fill(response, name, kind, {**self.zones, **self.over_tcp} if protocol == "tcp" else self.zones)
        match failure:
            case DnsFailure.SILENCE:
                return None
            case DnsFailure.GARBAGE:
                return data[:2] + b"\xff" * 9
            case DnsFailure.TRUNCATED:
                response.flags |= dns.flags.TC
            case DnsFailure.SERVFAIL | DnsFailure.REFUSED:
                response.set_rcode(dns.rcode.from_text(failure.name))
        return response.to_wire()

    def _fill(self, response: dns.message.Message, name: str, kind: str, zones: Zones) -> DnsFailure | None:
        for _ in range(MAX_CNAME_CHAIN):
            rows = zones.get(_key(name))
            if isinstance(rows, DnsFailure):
                return rows
            if rows is None:
                if not _has_names_below(name, zones):
                    response.set_rcode(dns.rcode.NXDOMAIN)
                return None
            records = rows.get(kind) or rows.get("CNAME") or ()
            if isinstance(records, DnsFailure):
                return records
            if not records:
                return None
            answered = kind if rows.get(kind) else "CNAME"
            response.answer.append(dns.rrset.from_text(dns.name.from_text(name), TTL, "IN", answered, *records))
            if answered == kind:
                return None
            name = records[0]
        return None


def _bound_pair(address: tuple[str, int]) -> tuple[socket.socket, socket.socket]:
    """Return a TCP and a UDP socket with the same port; port 0 is a free one."""
    while True:
        tcp, udp = socket.socket(), socket.socket(type=socket.SOCK_DGRAM)
        tcp.bind(address)
        try:
            udp.bind(tcp.getsockname())
        except OSError:
            tcp.close()
            udp.close()
            if address[1]:
                raise
        else:
            return tcp, udp


def _key(name: str) -> str:
    return name.lower().rstrip(".")


def _has_names_below(name: str, zones: Zones) -> bool:
    return any(other.endswith(f".{_key(name)}") for other in zones)
