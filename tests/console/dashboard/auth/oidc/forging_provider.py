"""An identity provider that answers as a test says: with forged tokens, wrong documents, or not at all."""

import functools
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, OctKey, OKPKey, RSAKey
from joserfc.jws import JWSRegistry

from tests.config.tls_proxy import Quiet, serving
from tests.console.dashboard.auth.oidc.real_provider import CLIENT_ID

ANY = JWSRegistry(algorithms=list(JWSRegistry.algorithms), strict_check_header=False)
LOGOUT_EVENT = "http://schemas.openid.net/event/backchannel-logout"


class ForgingProvider:
    """claims: of the person, changed by a test. requests: the paths that were called, in order."""

    def __init__(self, url: str) -> None:
        self.issuer = url
        self.keys = _keys()
        self.published = [*self.keys]
        self.claims: dict[str, Any] = {"sub": "grace", "email": "grace@example.com", "email_verified": True}
        self.userinfo: dict[str, Any] = {}
        # Replaces members of the discovery document; None removes one.
        self.metadata: dict[str, Any] = {}
        # Replaces responses by path: a status with a body, or a function that returns them.
        self.responses: dict[str, Any] = {}
        self.requests: list[str] = []
        self.token_requests: list[dict[str, str]] = []
        self.id_token: Any = None
        self.clock_ahead_seconds = 0

    def sign(self, claims: dict[str, Any], *, algorithm: str = "RS256", key: Any = None, **header: Any) -> str:
        key = key or self.keys[algorithm]
        return jwt.encode({"alg": algorithm, "kid": key.kid, **header}, claims, key, registry=ANY)

    def id_claims(self, nonce: str | None, /, **changed: Any) -> dict[str, Any]:
        """Return the claims of a valid ID token with changes; None removes one."""
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT_ID, "exp": now + 300, "iat": now, "nonce": nonce, **self.claims}
        return {name: value for name, value in {**claims, **changed}.items() if value is not None}

    def logout_claims(self, **changed: Any) -> dict[str, Any]:
        now = int(time.time())
        claims = {
            "iss": self.issuer, "aud": CLIENT_ID, "iat": now, "exp": now + 120, "jti": f"{time.time_ns()}",
            "sub": "grace", "events": {LOGOUT_EVENT: {}},
        }  # fmt: skip
        return {name: value for name, value in {**claims, **changed}.items() if value is not None}

    def document(self) -> dict[str, Any]:
        url = self.issuer
        found = {
            "issuer": url,
            "authorization_endpoint": f"{url}/authorize",
            "token_endpoint": f"{url}/token",
            "jwks_uri": f"{url}/keys",
            "userinfo_endpoint": f"{url}/userinfo",
            "end_session_endpoint": f"{url}/end",
            **self.metadata,
        }
        return {name: value for name, value in found.items() if value is not None}

    def answer(self, path: str, body: str) -> tuple[int, Any]:
        self.requests.append(path)
        if path in self.responses:
            given = self.responses[path]
            return given() if callable(given) else given
        if path == "/token":
            self.token_requests.append({name: values[0] for name, values in parse_qs(body).items()})
        if path == "/authorize":
            return 302, b""
        documents = {
            "/.well-known/openid-configuration": self.document,
            "/keys": lambda: KeySet([self.keys[name] for name in self.published]).as_dict(),
            "/token": lambda: {"access_token": "at", "token_type": "Bearer", "id_token": self.id_token},
            "/userinfo": lambda: {"sub": self.claims["sub"], **self.userinfo},
        }
        return 200, documents[path]()


@functools.cache
def _keys() -> dict[str, Any]:
    return {
        "RS256": RSAKey.generate_key(2048, {"kid": "rsa"}),
        "ES256": ECKey.generate_key("P-256", {"kid": "ec"}),
        "EdDSA": OKPKey.generate_key("Ed25519", {"kid": "ed"}),
    }


@contextmanager
def forging_provider() -> Iterator[ForgingProvider]:
    class Handler(Quiet, BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            url = urlsplit(self.path)
            status, body = provider.answer(url.path, self.rfile.read(length).decode())
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            if url.path == "/authorize" and status == 302:
                self.send_header("Location", f"{parse_qs(url.query)['redirect_uri'][0]}?error=login_required")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def do_POST(self) -> None:
            self.do_GET()

        def date_time_string(self, timestamp: float | None = None) -> str:
            return super().date_time_string(time.time() + provider.clock_ahead_seconds)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    # A hanging response must not delay the end of a test.
    server.block_on_close = False
    provider = ForgingProvider(f"http://127.0.0.1:{server.server_port}")
    with serving(server):
        yield provider


def shared_secret(text: str) -> OctKey:
    return OctKey.import_key(text)
