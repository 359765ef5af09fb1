"""Signed zones on loopback: Knot DNS signs and serves them, Unbound validates them.

with signed_zone(directory, "example.test", records) as resolver: ... resolver is the address and port of Unbound.
"""

import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import dns.exception
import dns.flags
import dns.message
import dns.query

from tests.stack.stack import free_port
from tests.standards.tools import program

KNOT = """
server:
  rundir: "{directory}"
  listen: 127.0.0.1@{port}
  udp-workers: 1
  tcp-workers: 1
  background-workers: 1
database:
  storage: "{directory}/db"
log:
  - target: stderr
    any: warning
policy:
  - id: own
    algorithm: ecdsap256sha256
    single-type-signing: on
zone:
  - domain: {signed}
    storage: "{directory}"
    file: signed.zone
    dnssec-signing: on
    dnssec-policy: own
    zonefile-sync: -1
  - domain: {unsigned}
    storage: "{directory}"
    file: unsigned.zone
    zonefile-sync: -1
"""
ZONE = """
$TTL 60
@ SOA ns admin 1 60 60 60 60
@ NS ns
ns A 127.0.0.1
"""
UNBOUND = """
server:
  directory: "{directory}"
  chroot: ""
  username: ""
  pidfile: ""
  interface: {host}@{port}
  do-not-query-localhost: no
  do-ip6: no
  use-syslog: no
  logfile: ""
  module-config: "validator iterator"
  trust-anchor: "{anchor}"
  local-zone: "test." nodefault
remote-control:
  control-enable: no
stub-zone:
  name: "{signed}"
  stub-addr: 127.0.0.1@{authority}
stub-zone:
  name: "{unsigned}"
  stub-addr: 127.0.0.1@{authority}
"""
SECONDS = 30


@contextmanager
def signed_zone(
    directory: Path,
    *,
    signed: tuple[str, Sequence[str]],
    unsigned: tuple[str, Sequence[str]],
    address: tuple[str, int] | None = None,
) -> Iterator[tuple[str, int]]:
    """Serve two zones; yield the address of a resolver that validates the signed one.

    signed, unsigned: a name, and records in the form of a zone file.
    address: of the resolver, by default a free port of 127.0.0.1.
    """
    knotd, keymgr = program("knotd", package="knot"), program("keymgr", package="knot")
    unbound = program("unbound", package="unbound")
    authority, (host, port) = free_port(), address or ("127.0.0.1", free_port())
    names = {"signed": signed[0], "unsigned": unsigned[0]}
    for file, (_, records) in (("signed", signed), ("unsigned", unsigned)):
        (directory / f"{file}.zone").write_text("\n".join([ZONE, *records, ""]))
    (directory / "db").mkdir()
    configuration = directory / "knot.conf"
    configuration.write_text(KNOT.format(directory=directory, port=authority, **names))
    with _running([knotd, "-c", str(configuration)]):
        _wait_for_zone(authority, signed[0])
        command = [keymgr, "-c", str(configuration), signed[0], "ds"]
        found = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=True)
        anchor = next(line for line in found.stdout.splitlines() if " DS " in line)
        settings = directory / "unbound.conf"
        values = {"host": host, "port": port, "anchor": anchor, "authority": authority, **names}
        settings.write_text(UNBOUND.format(directory=directory, **values))
        with _running([unbound, "-d", "-c", str(settings)]):
            _wait_for_zone(port, signed[0], host=host)
            yield host, port


@contextmanager
def _running(command: Sequence[str]) -> Iterator[None]:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield
    finally:
        process.terminate()
        process.wait(SECONDS)


def _wait_for_zone(port: int, name: str, *, host: str = "127.0.0.1") -> None:
    """Wait until a server answers with signatures."""
    query = dns.message.make_query(name, "SOA", want_dnssec=True)
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        try:
            answer = dns.query.udp(query, host, port=port, timeout=1)
        except (OSError, dns.exception.DNSException):
            time.sleep(0.05)
            continue
        if len(answer.answer) > 1:
            return
        time.sleep(0.05)
    raise AssertionError(f"no signed answer about {name} at port {port}")
