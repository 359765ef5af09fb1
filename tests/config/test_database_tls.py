"""The parameters of TLS in DATABASE_URL, against a PostgreSQL behind a TLS server.

The PostgreSQL of the tests has no TLS itself.
"""

import os
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from urllib.parse import urlencode, urlsplit

import pytest
import trustme

from tests.config.test_start import start
from tests.rows import each

# https://www.postgresql.org/docs/current/protocol-message-formats.html
SSL_REQUEST = bytes([0, 0, 0, 8, 4, 210, 22, 47])
READ = """
import django; django.setup()
from django.db import connection
with connection.cursor() as cursor:
    cursor.execute("SHOW lock_timeout")
    print(connection.connection.pgconn.ssl_in_use, *cursor.fetchone())
"""


def tls_server(context: ssl.SSLContext, target: tuple[str, int]) -> ThreadingTCPServer:
    """Return a server that forwards connections to a PostgreSQL, and TLS without its encryption."""

    class Handler(BaseRequestHandler):
        def handle(self) -> None:
            begin = self.request.recv(len(SSL_REQUEST), socket.MSG_WAITALL)
            with suppress(OSError), socket.create_connection(target) as upstream:
                if begin != SSL_REQUEST:
                    upstream.sendall(begin)
                    connect(self.request, upstream)
                    return
                self.request.sendall(b"S")
                with context.wrap_socket(self.request, server_side=True) as client:
                    connect(client, upstream)

    server = ThreadingTCPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    return server


def connect(client: socket.socket, upstream: socket.socket) -> None:
    """Forward in both directions until both have ended."""
    back = threading.Thread(target=forward, args=[upstream, client])
    back.start()
    forward(client, upstream)
    back.join()


def forward(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65_536):
            target.sendall(data)
        target.shutdown(socket.SHUT_RDWR)


@dataclass
class SecureDatabase:
    """A server with a certificate for 127.0.0.1. url: without parameters. authority: the file of its issuer."""

    url: str
    authority: Path

    def connect(self, **parameters: str) -> str:
        """Connect with the settings of a process; return whether TLS is used and a timeout, or the error."""
        parameters = {"sslrootcert": str(self.authority), **parameters}
        url = f"{self.url}?{urlencode(parameters)}"
        run = start("-c", READ, DATABASE_URL=url, DJANGO_SETTINGS_MODULE="config.settings")
        return run.stdout.strip() or run.stderr


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureDatabase]:
    url = urlsplit(os.environ["DATABASE_URL"])
    authority, path = trustme.CA(), tmp_path_factory.mktemp("authority") / "ca.pem"
    authority.cert_pem.write_to_path(path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    with tls_server(context, (url.hostname or "", url.port or 0)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"{url.username}:{url.password}@127.0.0.1:{server.server_address[1]}"
        yield SecureDatabase(url._replace(netloc=address).geturl(), path)
        server.shutdown()


@each(
    ("mode", "uses_tls"),
    [("disable", False), ("prefer", True), ("require", True), ("verify-ca", True), ("verify-full", True)],
)
def test_the_mode_is_used_beside_the_timeouts_of_the_service(database, mode, uses_tls):
    assert database.connect(sslmode=mode) == f"{uses_tls} 5s"


@pytest.mark.parametrize("mode", ["verify-ca", "verify-full"])
def test_a_server_of_another_authority_is_refused(database, mode, tmp_path):
    other = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(other)
    assert "certificate verify failed" in database.connect(sslmode=mode, sslrootcert=str(other))


def test_a_server_with_a_certificate_for_another_name_is_refused(database):
    elsewhere = SecureDatabase(database.url.replace("127.0.0.1", "localhost"), database.authority)
    assert 'does not match host name "localhost"' in elsewhere.connect(sslmode="verify-full")
    assert elsewhere.connect(sslmode="verify-ca") == "True 5s"
