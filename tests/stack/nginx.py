"""Debian's nginx with the shipped files, and certbot with an ACME server."""

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from tests.stack.caddy import Authority
from tests.stack.servers import running_server
from tests.stack.stack import PYTHON, REPOSITORY, listens, wait_for
from tests.standards.tools import program

DEPLOY = REPOSITORY / "deploy"
DEFAULT_SITE = Path("/etc/nginx/sites-available/default")
# The programs have the user and the temporary files of the test.
MAIN = """{user}
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/nginx.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/temporary/body;
    proxy_temp_path {folder}/temporary/proxy;
    fastcgi_temp_path {folder}/temporary/fastcgi;
    uwsgi_temp_path {folder}/temporary/uwsgi;
    scgi_temp_path {folder}/temporary/scgi;
    include {folder}/sites/*;
}}
"""
CERTBOT = """#!/bin/sh
exec {certbot} "$@" --server https://127.0.0.1:{port}/acme/local/directory --config-dir {folder}/letsencrypt \\
    --work-dir {folder}/certbot --logs-dir {folder}/certbot
"""
POSTRIDER = """#!/bin/sh
shift
cd {repository} && exec {python} manage.py "$@"
"""
SYSTEMCTL = """#!/bin/sh
exec {nginx} -c {folder}/nginx.conf -s reload
"""


@dataclass(frozen=True)
class Nginx:
    """A running nginx. sites: the directory of enabled sites."""

    folder: Path
    sites: Path
    environment: dict[str, str]

    def run(self, *command: str) -> None:
        """Run a command with the programs of this server. Raises CalledProcessError."""
        subprocess.run(command, env=self.environment, check=True, timeout=120, stdin=subprocess.DEVNULL)

    def update_tracking_hosts(self) -> None:
        """Run the shipped script."""
        self.run("sh", str(self.folder / "tracking-hosts"))


@contextmanager
def proxy(folder: Path, authority: Authority, *, public_url: str, upstream: str, database_url: str) -> Iterator[Nginx]:
    """Run nginx as after the guide: with Debian's default site, and the shipped one for PUBLIC_URL."""
    nginx, certbot = program("nginx", package="nginx"), program("certbot", package="certbot")
    url = urlsplit(public_url)
    sites, programs = folder / "sites", folder / "programs"
    for directory in (sites, programs, folder / "temporary", folder / "www"):
        directory.mkdir()

    def adapt(text: str) -> str:
        text = re.sub(r"^\s*listen \[::\].*\n", "", text, flags=re.MULTILINE)
        text = text.replace("listen 80", f"listen 127.0.0.1:{authority.http_port}")
        text = text.replace("listen 443", f"listen 127.0.0.1:{url.port}").replace("127.0.0.1:8000", upstream)
        text = text.replace("/etc/letsencrypt", f"{folder}/letsencrypt").replace("/var/www/html", f"{folder}/www")
        text = text.replace("/etc/nginx/sites-enabled", str(sites))
        return text.replace("/opt/postrider/deploy/nginx.conf", f"{folder}/site")

    (folder / "nginx.conf").write_text(MAIN.format(user="user root;" if os.geteuid() == 0 else "", folder=folder))
    (sites / "default").write_text(adapt(DEFAULT_SITE.read_text()))
    (folder / "site").write_text(adapt((DEPLOY / "nginx.conf").read_text()))
    (folder / "tracking-hosts").write_text(adapt((DEPLOY / "tracking-hosts").read_text()))
    values = {"nginx": nginx, "certbot": certbot, "port": authority.port, "folder": folder}
    values |= {"python": PYTHON, "repository": REPOSITORY}
    for name, text in (("certbot", CERTBOT), ("postrider-admin", POSTRIDER), ("systemctl", SYSTEMCTL)):
        (programs / name).write_text(text.format(**values))
        (programs / name).chmod(0o755)
    variables = {"DATABASE_URL": database_url, "REQUESTS_CA_BUNDLE": str(authority.root)}
    environment = {**os.environ, **variables, "PATH": f"{programs}:{os.environ['PATH']}"}
    server = Nginx(folder, sites, environment)
    command = [nginx, "-c", str(folder / "nginx.conf")]
    with running_server(command, is_ready=lambda: listens(authority.http_port), log=folder / "output.log") as process:
        register = ("--agree-tos", "--register-unsafely-without-email", "--non-interactive")
        webroot = ("--webroot", "--webroot-path", str(folder / "www"), "--domain", url.hostname or "")
        server.run("certbot", "certonly", *register, *webroot)
        (sites / "postrider").write_text((folder / "site").read_text().replace("mail.example.com", url.hostname or ""))
        server.run("systemctl", "reload", "nginx")
        wait_for(lambda: listens(url.port or 443), seconds=60, what="nginx has loaded the site", server=process)
        yield server
