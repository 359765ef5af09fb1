"""An https server that answers the proof of a tracking host, with certificates of an authority of the test."""

import http.server
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import trustme


class ProofServer:
    """Answers every request. Change status and body, or call `serve` with another certificate, at any time."""

    def __init__(self, authority: trustme.CA, name: str) -> None:
        self.status, self.body = 200, ""
        self.requests: list[tuple[str, str]] = []
        server = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.requests.append((self.headers["Host"], self.path))
                self.send_response(server.status)
                self.send_header("Location", "https://elsewhere.example/")
                self.end_headers()
                self.wfile.write(server.body.encode())

            def log_message(self, *_: Any) -> None:
                pass

        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.use_certificate(authority, name)
        self._http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.socket = self.context.wrap_socket(self._http.socket, server_side=True, do_handshake_on_connect=False)
        self.port: int = self._http.server_address[1]

    def use_certificate(self, authority: trustme.CA, name: str) -> None:
        authority.issue_cert(name).configure_cert(self.context)

    def stop(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def __enter__(self) -> Self:
        self._http.handle_error = lambda *_: None  # type: ignore[method-assign]  # clients that refuse the certificate
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._thread.join()


@contextmanager
def trusted(authority: trustme.CA, monkeypatch: Any, tmp_path: Any) -> Iterator[None]:
    """Let checks trust only an authority of the test."""
    from core.lib.network import guarded_http

    path = tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(path)
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    guarded_http.verified_tls.cache_clear()
    yield
    guarded_http.verified_tls.cache_clear()
