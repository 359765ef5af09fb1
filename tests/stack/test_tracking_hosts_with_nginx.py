"""Tracking hosts behind Debian's nginx, with the shipped script and certificates of certbot."""

import http.client
import ssl
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.db.models.functions import Now

from domains.models import TrackingHost
from tests.conftest import Account, make_account
from tests.interfaces.tracking.test_without_database import database_url
from tests.stack import nginx
from tests.stack.stack import free_port, wait_for
from tests.stack.test_tracking_hosts import (
    ACTIVE_SECONDS,
    HOST,
    Installation,
    is_active,
    publish_host,
    running_service,
    sent_links,
    verified_owner,
    wait_until_used,
)

pytestmark = [pytest.mark.stack, pytest.mark.long, pytest.mark.django_db(transaction=True)]


@dataclass
class Server:
    """The service behind nginx. http_port: of nginx."""

    service: Installation
    nginx: nginx.Nginx
    http_port: int

    def answer_to_http(self, path: str) -> tuple[int, str | None]:
        """Return the status and the target of a request to the host without TLS."""
        connection = http.client.HTTPConnection("127.0.0.1", self.http_port, timeout=60)
        connection.request("GET", path, headers={"Host": HOST})
        response = connection.getresponse()
        connection.close()
        return response.status, response.headers["Location"]


@pytest.fixture
def server(tmp_path: Path, settings: Any, monkeypatch: Any) -> Iterator[Server]:
    with running_service(tmp_path, settings, monkeypatch) as (service, authority):
        upstream = service.url.removeprefix("http://")
        with nginx.proxy(
            tmp_path, authority, public_url=settings.PUBLIC_URL, upstream=upstream, database_url=database_url()
        ) as running:
            yield Server(service, running, authority.http_port)


@pytest.fixture
def account(transactional_db: None) -> Account:
    return make_account("alice")


def test_the_script_adds_hosts_and_removes_those_that_ended(server: Server, account: Account):
    service, sites = server.service, server.nginx.sites
    owner = verified_owner(account, service, "shop.example")
    server.nginx.update_tracking_hosts()
    assert {site.name for site in sites.iterdir()} == {"default", "postrider"}

    # The certificate of nginx is that of the service until the script has run.
    publish_host(owner)
    assert owner.verify()["tracking"]["status"] == "pending"
    server.nginx.update_tracking_hosts()
    wait_for(lambda: is_active(owner), seconds=ACTIVE_SECONDS, what="the host is active")
    certificate = service.certificate(HOST)
    assert ("DNS", HOST) in certificate["subjectAltName"]
    wait_until_used()

    links = sent_links(owner.api, "a@shop.example")
    assert {urlsplit(url).hostname for url in links.values()} == {HOST}
    status, headers, _ = service.get(links["click"])
    assert (status, headers["Location"], headers["Set-Cookie"]) == (302, "https://shop.example/", None)
    for path in ("/", "/dashboard/", "/v1/me", "/internal/tls?domain=x"):
        assert service.get(f"https://{HOST}:{service.port}{path}")[0] == 404
    assert service.get(f"https://mail.service.example:{service.port}/internal/tls?domain={HOST}")[0] == 403
    assert server.answer_to_http("/u/x") == (301, f"https://{HOST}/u/x")
    assert server.answer_to_http("/.well-known/acme-challenge/x")[0] == 404

    # Certificates of this authority last for hours, so that certbot renews them each time.
    server.nginx.update_tracking_hosts()
    wait_for(
        lambda: service.certificate(HOST)["serialNumber"] != certificate["serialNumber"],
        seconds=30,
        what="nginx has loaded the renewed certificate",
    )
    assert service.get(links["pixel"])[0] == 200

    # Without the database, nothing is removed.
    environment = {**server.nginx.environment, "DATABASE_URL": database_url(free_port())}
    with pytest.raises(subprocess.CalledProcessError):
        replace(server.nginx, environment=environment).update_tracking_hosts()
    assert (sites / f"tracking-{HOST}").exists()

    TrackingHost.objects.update(domain=None, retired_at=Now() - timedelta(days=31))
    server.nginx.update_tracking_hosts()
    assert {site.name for site in sites.iterdir()} == {"default", "postrider"}
    assert not (server.nginx.folder / "letsencrypt/live" / HOST).exists()
    with pytest.raises(ssl.SSLCertVerificationError):
        wait_for(lambda: not service.certificate(HOST), seconds=30, what="nginx has loaded its sites")
