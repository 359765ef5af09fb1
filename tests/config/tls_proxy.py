"""A TLS reverse proxy on loopback, in front of the service in this process: the way of a request in production."""

import http.client
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from django.core.handlers.wsgi import WSGIHandler
from django.core.servers.basehttp import ThreadedWSGIServer, WSGIRequestHandler

FORWARDED = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.7"}


class Quiet:
    """Part of a request handler: it writes no line for a request."""

    def log_message(self, *_: object) -> None:
        pass


class TlsProxy:
    """forwarded: the headers that the proxy adds. upstream: the port of the server behind it."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self.forwarded = dict(FORWARDED)
        self.upstream = 0
        proxy = self

        class Handler(Quiet, BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                connection = http.client.HTTPConnection("127.0.0.1", proxy.upstream, timeout=10)
                connection.request("GET", self.path, headers={**dict(self.headers), **proxy.forwarded})
                response = connection.getresponse()
                body = response.read()
                connection.close()
                self.send_response(response.status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_port


class QuietWsgiHandler(Quiet, WSGIRequestHandler):
    pass


class OtherSite(Quiet, BaseHTTPRequestHandler):
    """A web server that is not Postrider."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"<h1>Welcome to nginx!</h1>")


@contextmanager
def serving(server: ThreadingHTTPServer | ThreadedWSGIServer) -> Iterator[int]:
    """Run a server in a thread; yield its port."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def web_server() -> Iterator[int]:
    """Run the service of this process in a thread, with its settings; yield the port."""
    server = ThreadedWSGIServer(("127.0.0.1", 0), QuietWsgiHandler)
    server.set_app(WSGIHandler())
    with serving(server) as port:
        yield port
