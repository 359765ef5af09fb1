"""Requests to tracking hosts: links, the proof, and nothing else (docs/decisions/0205)."""

import re
from datetime import timedelta
from io import StringIO
from itertools import product
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.core.management import call_command
from django.db import OperationalError
from django.db.models.functions import Now
from django.test import Client

from core.lib.ids import to_uuid
from core.lib.tokens import make_token
from core.workspaces.models import Workspace
from domains.models import TrackingHost
from domains.tracking_hosts import proofs
from emails.links import OLD_CLICK
from emails.sending.jobs import MEMORY_BYTES, load_jobs
from emails.sending.outgoing_messages import build_message
from interfaces.tracking import hosts
from interfaces.tracking.hosts import tracking_hosts
from suppressions.models import Suppression
from tests.conftest import Api, mail, make_domain
from tests.emails.builders import claim_entries
from tests.interfaces.tracking.conftest import TARGET, Reader, make_reader
from tests.rows import each

HOST = "links.alice.example"
IDN_HOST = "links.xn--bcher-kva.example"
# Every prefix of config.urls, files, dialects at the root, probes, and imitations of what a tracking host serves.
PATHS = (
    "/", "/dashboard", "/dashboard/", "/dashboard/login/", "/admin/", "/admin", "/v1/emails", "/v1/emails/send",
    "/v1/openapi.json", "/v1/admin/workspaces", "/v1/me", "/v1", "/compat/resend/emails", "/compat/postmark/email",
    "/emails", "/email", "/domains", "/v3/mail/send", "/docs/", "/docs/api", "/docs/errors", "/llms.txt", "/robots.txt",
    "/favicon.ico", "/static/dashboard/page.css", "/static/", "/anymail/mailgun/tracking/", "/healthz", "/servingz",
    "/readyz", "/metrics", "/internal/tls", "/internal/tls?domain=links.alice.example", "/.well-known/security.txt",
    "/.well-known/postrider/x", "/t/", "/t/x/y", "/t/../dashboard/", "/t/o", "/T/o/x", "//t/o/x", "/%2e/dashboard/",
    "/u", "/dashboard/../u/x", "/media/x", "/oidc/backchannel", "/dashboard/oidc/callback", "/admin/oidc/",
)  # fmt: skip

pytestmark = pytest.mark.django_db


def make_host(workspace: Workspace, name: str = HOST, **fields: Any) -> TrackingHost:
    """Add a tracking host, active unless fields say otherwise, and let this process know it."""
    values = {"status": "active", "seen_at": Now(), "proven_at": Now() - timedelta(minutes=2), **fields}
    host = TrackingHost.objects.create(workspace=workspace, name=name, **values)
    tracking_hosts.read()
    return host


@pytest.fixture
def host(alice) -> TrackingHost:
    return make_host(alice.workspace)


def get(path: str, host: str = HOST, **options: Any) -> Any:
    return Client(raise_request_exception=False).get(path, headers={"host": host}, **options)


def post(path: str, host: str = HOST, data: str = "List-Unsubscribe=One-Click") -> Any:
    client = Client(raise_request_exception=False, enforce_csrf_checks=True)
    return client.post(path, data, "application/x-www-form-urlencoded", headers={"host": host})


@pytest.fixture
def member(alice) -> Client:
    """A client with the cookies of the dashboard."""
    client = Client(raise_request_exception=False)
    client.force_login(alice.owner)
    client.cookies["csrf"] = "x" * 32
    return client


@each("method", ["get", "post", "head", "options"])
def test_a_host_serves_nothing_else(host, member, api: Api, method, settings):
    settings.COMPAT_AT_ROOT = ["resend", "postmark", "sendgrid"]
    assert len(PATHS) >= 40
    for path, client in product(PATHS, (Client(raise_request_exception=False), member)):
        response = getattr(client, method)(path, headers={"host": HOST, **api.headers})
        assert (path, response.status_code) == (path, 404)
        assert (path, response.content) == (path, b"" if method == "head" else b"Not found\n")
        assert not response.cookies
        described = str(response.headers).lower()
        assert "set-cookie" not in described
        assert "server" not in described
        assert "location" not in described
        assert "vary" not in described or "cookie" not in response["Vary"].lower()


@each("name", [HOST, HOST.upper(), f"{HOST}.", f"{HOST}:443", f"{HOST}:8443", f"{HOST.title()}.:443"])
def test_the_spelling_of_a_host_does_not_matter(host, reader: Reader, name):
    assert get("/dashboard/", name).status_code == 404
    assert get(reader.click_path(), name)["Location"] == TARGET


@each("name", [
    "links.bob.example", f"x{HOST}", f"x.{HOST}", "alice.example", "127.0.0.1.nip.io", "", "[::2]", f"{HOST}@x", "a b",
])  # fmt: skip
@each("path", ["/dashboard/", "/t/o/x", "/.well-known/postrider", "/"])
def test_any_other_host_is_refused_as_before(host, name, path):
    assert get(path, name).status_code == 400


def test_the_service_itself_is_as_before(host, reader: Reader, member):
    assert member.get("/dashboard/").status_code == 200
    assert get("/.well-known/postrider", "testserver").status_code == 404
    assert reader.clicks()["Location"] == TARGET


def test_a_name_of_the_service_is_never_a_tracking_host(alice):
    make_host(alice.workspace, "testserver")
    assert Client().get("/dashboard/login/").status_code == 200


# What a tracking host serves


def test_links_work_there_and_at_the_service(host, reader: Reader):
    for name in (HOST, "testserver"):
        response = reader.visits(reader.click_path(), host=name)
        assert (response.status_code, response["Location"], dict(response.cookies)) == (302, TARGET, {})
        response = reader.visits(reader.pixel_path, host=name)
        assert (response.status_code, response["Content-Type"], dict(response.cookies)) == (200, "image/gif", {})
    assert set(reader.kinds()) == {"opened", "clicked"}


@each("name", [HOST, "testserver"])
def test_a_recipient_unsubscribes_with_one_click(host, reader: Reader, name):
    page = get(reader.unsubscribe_path, name)
    assert (page.status_code, dict(page.cookies)) == (200, {})
    assert not Suppression.objects.exists()
    response = post(reader.unsubscribe_path, name)
    assert (response.status_code, dict(response.cookies)) == (200, {})
    assert Suppression.objects.get().email == "ada@example.com"


def test_a_page_needs_no_other_file(host, reader: Reader, member):
    page = get(reader.unsubscribe_path).content.decode()
    assert re.findall(r'(?:src|href)="([^"]*)"', page) == ["/t/page.css"]
    style = get("/t/page.css")
    assert (style.status_code, style["Content-Type"], dict(style.cookies)) == (200, "text/css; charset=utf-8", {})


def test_the_proof_is_that_of_this_installation(host):
    response = get("/.well-known/postrider")
    assert response.content.decode().split() == proofs()
    assert (response.status_code, dict(response.cookies)) == (200, {})
    assert all(len(proof) == 64 for proof in proofs())


def test_the_404_of_a_link_has_no_version_and_links_of_an_internationalized_host_work(host, alice, reader: Reader):
    response = get("/t/c/nonsense")
    assert (response.status_code, dict(response.cookies)) == (404, {})
    for text in (response.content.decode().lower(), str(response.headers).lower()):
        assert "postrider" not in text
        assert "django" not in text
        assert "gunicorn" not in text

    make_host(alice.workspace, IDN_HOST)
    assert get(reader.click_path(), IDN_HOST)["Location"] == TARGET
    assert get("/dashboard/", IDN_HOST).status_code == 404


# Links of other workspaces


def test_links_of_another_workspace_do_not_work_there(host, bob):
    stranger = make_reader(bob.workspace)
    assert get(stranger.click_path()).status_code == 404
    assert get(stranger.unsubscribe_path).status_code == 404
    assert post(stranger.unsubscribe_path).status_code == 404
    assert not Suppression.objects.exists()
    assert stranger.clicks()["Location"] == TARGET
    assert get(stranger.unsubscribe_path, "testserver").status_code == 200


@each("name", [HOST, "testserver"])
def test_the_preference_page_is_at_the_host_of_the_link(host, bob, reader: Reader, name):
    path = reader.unsubscribe_path.replace("/u/", "/p/", 1)
    page = get(path, name)
    assert (page.status_code, dict(page.cookies)) == (200, {})
    assert post(path, name, data="everything=1").status_code == 200
    foreign = make_reader(bob.workspace).unsubscribe_path.replace("/u/", "/p/", 1)
    expected = 404 if name == HOST else 200
    assert get(foreign, name).status_code == post(foreign, name, data="everything=1").status_code == expected


def test_the_pixel_is_the_same_for_every_token(host, bob, reader: Reader):
    answers = [get(path) for path in (reader.pixel_path, make_reader(bob.workspace).pixel_path, "/t/o/nonsense")]
    assert len({(answer.status_code, answer.content) for answer in answers}) == 1


def test_links_that_do_not_name_their_workspace_work_at_the_service_only(host, reader: Reader):
    path = f"/t/c/{make_token(to_uuid(reader.recipient.id).bytes + TARGET.encode(), purpose=OLD_CLICK)}"
    assert (get(path).status_code, get(path, "testserver").status_code) == (404, 302)


# The life of a host


def links_of(api: Api) -> set[str]:
    """Send an email and return the hosts of all its links."""
    html = '<p>Hello <a href="https://shop.example/">shop</a></p>'
    assert api.post("/emails/send", mail(html=html)).status_code == 202
    (job,) = load_jobs(claim_entries(10), memory_bytes=MEMORY_BYTES)
    message = build_message(job)
    urls = re.findall(r"https?://[^\s\"<>]+", f"{message.html} {message.text} {message.unsubscribe_url}")
    assert len(urls) == 6, urls
    header = re.search(rb"List-Unsubscribe:\s+<(https?://[^/]+)/u/", message.to_bytes())
    assert header
    # The text has the original link.
    return {urlsplit(url).netloc for url in [*urls, header[1].decode()]} - {"shop.example"}


def test_emails_before_while_and_after_a_host_is_active(api: Api, alice, settings):
    settings.PUBLIC_URL = "https://mail.service.example"
    service = {"mail.service.example"}
    assert links_of(api) == service
    host = make_host(alice.workspace, domain=alice.workspace.domains.get(), status="pending", proven_at=None)
    assert links_of(api) == service
    TrackingHost.objects.update(status="active", proven_at=Now())
    # Web processes may not know the host yet.
    assert links_of(api) == service
    TrackingHost.objects.update(proven_at=Now() - timedelta(minutes=2))
    assert links_of(api) == {HOST}
    TrackingHost.objects.update(status="failed")
    assert links_of(api) == service
    TrackingHost.objects.filter(id=host.id).update(status="active", domain=None, retired_at=Now())
    assert links_of(api) == service


def test_links_have_the_port_of_the_service_and_never_the_host_of_another_domain(api: Api, alice, settings):
    settings.PUBLIC_URL = "https://mail.service.example:8443"
    make_host(alice.workspace, "links.other.example", domain=make_domain(alice.workspace, "other.example"))
    assert links_of(api) == {"mail.service.example:8443"}
    make_host(alice.workspace, domain=alice.workspace.domains.get(name="alice.example"))
    assert links_of(api) == {f"{HOST}:8443"}


@each(("fields", "link", "proof"), [
    ({"status": "pending", "proven_at": None}, 404, 200), ({"status": "failed"}, 302, 200),
    ({"retired_at": Now() - timedelta(days=29)}, 302, 200), ({"retired_at": Now() - timedelta(days=31)}, 400, 400),
])  # fmt: skip
def test_links_work_at_a_failed_host_and_for_thirty_days_after_the_domain_is_deleted(
    alice, reader: Reader, fields, link, proof
):
    make_host(alice.workspace, **fields)
    assert get(reader.click_path()).status_code == link
    assert get("/.well-known/postrider").status_code == proof


def test_links_of_both_workspaces_work_after_a_host_has_moved(alice, bob, reader: Reader):
    make_host(alice.workspace, retired_at=Now())
    make_host(bob.workspace)
    assert {get(one.click_path()).status_code for one in (reader, make_reader(bob.workspace))} == {302}


def test_a_stranger_who_waits_for_a_host_has_no_links_there(host, bob):
    make_host(bob.workspace, status="pending", proven_at=None)
    assert get(make_reader(bob.workspace).click_path()).status_code == 404


# The map of a process


def test_a_request_needs_no_query(host, reader: Reader, django_assert_num_queries):
    with django_assert_num_queries(0):
        assert get(reader.click_path()).status_code == 302
        assert get("/dashboard/").status_code == 404
        assert get("/.well-known/postrider").status_code == 200
        assert get("/dashboard/", "links.unknown.example").status_code == 400


def test_all_hosts_are_read_in_one_query(host, bob, django_assert_num_queries):
    make_host(bob.workspace, "links.bob.example")
    with django_assert_num_queries(1):
        tracking_hosts.read()


def test_the_last_known_hosts_stay_while_the_database_is_down(host, monkeypatch):
    def fail() -> None:
        raise OperationalError

    monkeypatch.setattr(hosts, "read_hosts", fail)
    monkeypatch.setattr(hosts.connection, "close", lambda: None)
    assert tracking_hosts._try_to_read() is False
    assert tracking_hosts.find(HOST)


# The question of the proxy


def ask(name: str, **meta: str) -> int:
    meta = {"REMOTE_ADDR": "127.0.0.1", **meta}
    return Client().get("/internal/tls", {"domain": name}, headers={"host": "127.0.0.1:8000"}, **meta).status_code


def test_the_proxy_may_obtain_certificates_of_hosts_that_lead_here(alice, bob, host):
    make_host(alice.workspace, "seen.alice.example", status="pending", proven_at=None)
    make_host(bob.workspace, "unseen.bob.example", status="pending", proven_at=None, seen_at=None)
    names = (
        HOST, HOST.upper(), f"{HOST}.", "seen.alice.example", "unseen.bob.example", "other.example", "testserver", "",
    )  # fmt: skip
    assert [ask(name) for name in names] == [200, 200, 200, 200, 403, 403, 403, 403]


@each(("meta", "status"), [
        ({}, 200), ({"REMOTE_ADDR": "::1"}, 200), ({"REMOTE_ADDR": "172.30.25.2"}, 200),
        ({"REMOTE_ADDR": "192.0.2.7"}, 403),
        ({"HTTP_X_FORWARDED_FOR": "127.0.0.1"}, 403), ({"HTTP_X_REAL_IP": "127.0.0.1"}, 403), ({"HTTP_VIA": "x"}, 403),
        ({"REMOTE_ADDR": "172.30.25.2", "HTTP_X_FORWARDED_FOR": "172.30.25.2"}, 403),
    ])  # fmt: skip
def test_only_the_proxy_itself_may_ask(host, settings, meta, status):
    from ipaddress import ip_network

    settings.TRUSTED_PROXIES = [ip_network("172.30.25.0/24")]
    assert ask(HOST, **meta) == status


def test_an_answer_needs_no_query(host, django_assert_num_queries):
    with django_assert_num_queries(0):
        assert (ask(HOST), ask("other.example")) == (200, 403)


def test_the_command_prints_the_names_for_other_proxies(alice, bob, host):
    make_host(alice.workspace, "a.alice.example", status="pending", proven_at=None)
    make_host(bob.workspace, "unseen.bob.example", status="pending", proven_at=None, seen_at=None)
    output = StringIO()
    call_command("tracking_hosts", stdout=output)
    assert output.getvalue().split() == ["a.alice.example", HOST]
