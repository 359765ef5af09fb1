"""Tracking hosts behind real Caddy, whose certificates a local ACME server signs."""

import http.client
import os
import re
import socket
import ssl
import statistics
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.db.models.functions import Now

from core.lib.network import guarded_http
from domains.models import TrackingHost
from emails.sending.jobs import MEMORY_BYTES, load_jobs
from emails.sending.outgoing_messages import build_message
from interfaces.tracking.hosts import RENEW_SECONDS
from suppressions.models import Suppression
from tests.clients.faulty import relay
from tests.conftest import Account, Api, mail, make_account, make_key
from tests.core.lib.nameserver import NameServer
from tests.domains.conftest import Owner, Zone
from tests.emails.builders import claim_entries
from tests.interfaces.tracking.test_without_database import call, database_url, web
from tests.stack import caddy
from tests.stack.caddy import Authority, acme_server
from tests.stack.limits import limited
from tests.stack.stack import free_port, wait_for

pytestmark = [pytest.mark.stack, pytest.mark.django_db(transaction=True)]

SERVICE = "mail.service.example"
IDN = "bücher.example"
HOST, IDN_HOST = "links.shop.example", "links.xn--bcher-kva.example"
# The map of a process is renewed every 30 s, and the first certificate takes some seconds.
ACTIVE_SECONDS = 120
MAX_ANSWER_SECONDS = 0.005
QUESTIONS = 200


@dataclass
class Installation:
    """The service behind a proxy.

    url, port: of web, and of the proxy. database: ends the way of web to the database. context: trusts the ACME server.
    """

    url: str
    port: int
    zone: Zone
    context: ssl.SSLContext
    database: ExitStack

    def get(self, url: str, *, method: str = "GET", body: str = "") -> tuple[int, Any, bytes]:
        """Call a URL at the proxy, with the certificate checked."""
        parts = urlsplit(url)
        connection = http.client.HTTPSConnection(parts.hostname or "", context=self.context, timeout=60)
        connection.sock = self.context.wrap_socket(
            socket.create_connection(("127.0.0.1", self.port), 60), server_hostname=parts.hostname
        )
        headers = {"Content-Type": "application/x-www-form-urlencoded", "User-Agent": "Mozilla/5.0 (X11) Firefox/128.0"}
        connection.request(method, f"{parts.path}?{parts.query}" if parts.query else parts.path, body, headers)
        response = connection.getresponse()
        try:
            return response.status, response.headers, response.read()
        finally:
            connection.close()

    def certificate(self, name: str) -> dict[str, Any]:
        with self.context.wrap_socket(
            socket.create_connection(("127.0.0.1", self.port), 60), server_hostname=name
        ) as connection:
            return dict(connection.getpeercert() or {})


@contextmanager
def running_service(tmp_path: Path, settings: Any, monkeypatch: Any) -> Iterator[tuple[Installation, Authority]]:
    """Run web, a name server and an ACME server that everything trusts; the caller runs the proxy."""
    port, database_port = free_port(), free_port()
    settings.PUBLIC_URL, settings.TRACKING_HOST = f"https://{SERVICE}:{port}", SERVICE
    settings.WEBHOOK_ALLOW_PRIVATE_NETWORKS = True
    settings.SPF_MECHANISMS = "ip4:127.0.0.1"
    for name in ("PUBLIC_URL", "TRACKING_HOST"):
        monkeypatch.setenv(name, getattr(settings, name))
    monkeypatch.setenv("ALLOWED_HOSTS", f"{SERVICE},127.0.0.1")  # 127.0.0.1: for the test itself
    with ExitStack() as running, ExitStack() as database:
        dns = running.enter_context(NameServer({SERVICE: {"A": ["127.0.0.1"]}}))
        settings.DNS_SERVERS = [dns.address]
        authority = running.enter_context(acme_server(tmp_path))
        database.enter_context(relay(database_url(), port=database_port))
        url = running.enter_context(web(tmp_path, database_url(database_port)))
        monkeypatch.setenv("SSL_CERT_FILE", str(authority.root))
        guarded_http.verified_tls.cache_clear()
        context = ssl.create_default_context(cafile=str(authority.root))
        yield Installation(url, port, Zone(dns), context, database), authority
        guarded_http.verified_tls.cache_clear()


@pytest.fixture
def installation(tmp_path: Path, settings: Any, monkeypatch: Any) -> Iterator[Installation]:
    with running_service(tmp_path, settings, monkeypatch) as (service, authority):
        upstream = service.url.removeprefix("http://")
        with caddy.proxy(tmp_path, authority, public_url=settings.PUBLIC_URL, upstream=upstream):
            yield service


@pytest.fixture
def account(transactional_db: None) -> Account:
    return make_account("alice")


def verified_owner(account: Account, installation: Installation, name: str) -> Owner:
    owner = Owner(Api(make_key(account.workspace)), installation.zone, name).publish()
    assert owner.verify()["status"] == "verified"
    return owner


def publish_host(owner: Owner) -> None:
    owner.body = owner.api.patch(owner.path, {"tracking": {"subdomain": "links"}}).json()
    owner.publish("Tracking")


def is_active(owner: Owner) -> bool:
    time.sleep(1)
    return bool(owner.verify()["tracking"]["status"] == "active")


def wait_until_used() -> None:
    """Wait until web has read the proven host, and let new emails use it, which they do a minute later."""
    time.sleep(RENEW_SECONDS + 1)
    TrackingHost.objects.update(proven_at=Now() - timedelta(minutes=2))


def sent_links(api: Api, sender: str, to: str = "ada@example.com") -> dict[str, str]:
    """Send an email; return its click, pixel and unsubscribe links."""
    html = '<p>Hello <a href="https://shop.example/">shop</a></p>'
    response = api.post("/emails/send", mail(html=html, to=to, **{"from": sender}))
    assert response.status_code == 202, response.content
    (job,) = load_jobs(claim_entries(10), memory_bytes=MEMORY_BYTES)
    message = build_message(job)
    click, _, pixel = (part.split('"')[0] for part in message.html.replace('src="', 'href="').split('href="')[1:4])
    return {"click": click, "pixel": pixel, "unsubscribe": message.unsubscribe_url or ""}


@pytest.mark.long
def test_a_new_host_gets_its_certificate_at_the_first_visit(installation: Installation, account: Account):
    owner = verified_owner(account, installation, "shop.example")
    before = sent_links(owner.api, "a@shop.example")
    assert {urlsplit(url).hostname for url in before.values()} == {SERVICE}
    owners = [owner, verified_owner(account, installation, IDN)]
    for one in owners:
        publish_host(one)
    for one in owners:
        wait_for(lambda one=one: is_active(one), seconds=ACTIVE_SECONDS, what=f"the host is active: {one.path}")
    assert ("DNS", HOST) in installation.certificate(HOST)["subjectAltName"]
    wait_until_used()

    # Links of emails before and after work at both.
    after = sent_links(owner.api, "a@shop.example")
    assert {urlsplit(url).hostname for url in after.values()} == {HOST}
    for links in (before, after):
        status, headers, _ = installation.get(links["click"])
        assert (status, headers["Location"], headers["Set-Cookie"]) == (302, "https://shop.example/", None)
        assert installation.get(links["pixel"])[0] == 200
    moved = before["click"].replace(SERVICE, HOST)
    assert installation.get(moved)[0] == 302
    for path in ("/", "/dashboard/", "/v1/me", "/docs/", "/metrics", "/internal/tls?domain=x"):
        assert installation.get(f"https://{HOST}:{installation.port}{path}")[0] == 404
    assert installation.get(f"https://{SERVICE}:{installation.port}/internal/tls?domain={HOST}")[0] == 403

    # An internationalized one.
    links = sent_links(owners[1].api, f"a@{IDN}")
    assert {urlsplit(url).hostname for url in links.values()} == {IDN_HOST}
    assert installation.get(links["click"])[0] == 302

    # One-click through the host.
    url = after["unsubscribe"]
    assert installation.get(url)[0] == 200
    status, headers, page = installation.get(url, method="POST", body="List-Unsubscribe=One-Click")
    assert (status, headers["Set-Cookie"], b"unsubscribed" in page) == (200, None, True)
    assert Suppression.objects.get().email == "ada@example.com"

    # Nobody else gets a certificate.
    with pytest.raises(ssl.SSLError):
        installation.certificate("links.other.example")

    # The next check after the CNAME was removed returns new emails to the service.
    del installation.zone.server.zones[HOST]
    assert owner.verify()["tracking"]["status"] == "failed"
    later = sent_links(owner.api, "a@shop.example", to="grace@example.com")
    assert {urlsplit(url).hostname for url in later.values()} == {SERVICE}
    assert installation.get(after["click"])[0] == 302


def processor_seconds() -> float:
    """Return the processor time that the web server of this test has used, all its processes together."""
    processes = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            _, name, fields = re.split(r"\((.*)\) ", path.read_text())
            # The fields of proc_pid_stat(5), from the third.
            _, parent, _, session, *others = fields.split()
            processes.append((name, int(parent), session, int(others[7]) + int(others[8])))
    (server,) = {
        session for name, parent, session, _ in processes if parent == os.getpid() and name.startswith("postrider: web")
    }
    return sum(ticks for *_, session, ticks in processes if session == server) / os.sysconf("SC_CLK_TCK")


@limited(MAX_ANSWER_SECONDS)
def test_the_permission_comes_from_memory_while_the_database_is_down(
    installation: Installation, account: Account, limit: float
):
    owner = verified_owner(account, installation, "shop.example")
    publish_host(owner)
    TrackingHost.objects.update(seen_at=Now())
    question = f"{installation.url}/internal/tls?domain="
    wait_for(lambda: call(question + HOST)[0] == 200, seconds=60, what="web knows the host")
    installation.database.close()
    assert call(f"{installation.url}/servingz")[0] == 503
    before = processor_seconds()
    answers = [call(question + name) for name in (HOST, "links.other.example") * (QUESTIONS // 2)]
    assert [answer[0] for answer in answers] == [200, 403] * (QUESTIONS // 2)
    # Other programs delay single answers, but neither the work for one nor the fastest ones.
    assert (processor_seconds() - before) / QUESTIONS < limit
    assert statistics.quantiles([answer[3] for answer in answers], n=10)[0] < limit
    # The certificate of the first visit needs no database either.
    assert ("DNS", HOST) in installation.certificate(HOST)["subjectAltName"]
    status, _, body = installation.get(f"https://{HOST}:{installation.port}/.well-known/postrider")
    assert (status, len(body)) == (200, 65)
