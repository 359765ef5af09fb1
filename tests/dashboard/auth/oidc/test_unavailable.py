"""A provider that hangs, is down, or is not allowed to be called: a page within five seconds."""

import threading
import time

import pytest
from django.test import Client

from lib.network.address_guard import Guard
from tests.dashboard.auth.oidc.steps import begin, come_back, is_signed_in, sign_in
from tests.dashboard.conftest import shown_text

PATHS = ["/.well-known/openid-configuration", "/keys", "/token", "/userinfo"]
SENTENCE = "Example ID does not answer: try again in a minute."


@pytest.fixture
def hang(forger):
    """Return a function that makes a path hang for a minute, or until the end of the test."""
    end = threading.Event()

    def hang(path):
        forger.responses[path] = lambda: (end.wait(60), {})

    yield hang
    end.set()


def start_or_finish(client, forger):
    """Sign in as far as it goes; the userinfo endpoint is asked for the address."""
    forger.claims.pop("email", None)
    response = client.get("/dashboard/oidc/")
    return response if response.status_code != 302 else sign_in(client, forger)


@pytest.mark.alone
@pytest.mark.parametrize("path", PATHS)
def test_a_provider_that_hangs_is_given_up_after_five_seconds(client, forger, hang, path):
    hang(path)
    started = time.monotonic()

    response = start_or_finish(client, forger)

    assert response.status_code == 503
    assert 4 < time.monotonic() - started < 8
    assert SENTENCE in shown_text(response)
    assert "Try again" in shown_text(response)
    assert "Sign in with a password" in shown_text(response)
    assert not is_signed_in(client)


@pytest.mark.alone
def test_all_requests_of_a_page_share_the_five_seconds(client, forger):
    for path in ("/keys", "/token"):
        forger.responses[path] = lambda: (time.sleep(3), {"access_token": "at", "token_type": "Bearer"})
    asked = begin(client)
    forger.id_token = forger.sign(forger.id_claims(asked["nonce"]))
    del forger.responses["/token"]
    forger.responses["/token"] = lambda: (
        200, (time.sleep(3), {"access_token": "at", "token_type": "Bearer", "id_token": forger.id_token})[1]
    )  # fmt: skip
    started = time.monotonic()

    assert come_back(client, state=asked["state"], code="a code").status_code == 503
    assert time.monotonic() - started < 7


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("status", [500, 502, 503])
def test_an_error_of_the_provider_is_a_page(client, forger, path, status):
    forger.responses[path] = status, b"<html>"

    response = start_or_finish(client, forger)

    assert response.status_code == 503
    assert SENTENCE in shown_text(response)


def test_a_provider_that_is_down_is_a_page(client, forger, settings):
    settings.OIDC_ISSUER = "http://127.0.0.1:1"
    assert SENTENCE in shown_text(client.get("/dashboard/oidc/"))


def test_without_passwords_the_page_offers_none(client, forger, settings):
    settings.PASSWORDS, settings.OIDC_ISSUER = "off", "http://127.0.0.1:1"
    assert "Sign in with a password" not in shown_text(client.get("/dashboard/oidc/"))


@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/token"])
def test_a_large_response_is_not_read(client, forger, path):
    forger.responses[path] = 200, b" " * 2_000_000
    assert start_or_finish(client, forger).status_code == 503


def test_the_sign_in_pages_do_not_ask_the_provider(client, forger):
    assert b"Sign in with Example ID" in client.get("/dashboard/login/").content
    assert client.get("/admin/login/").status_code == 200
    assert forger.requests == []


class TestGuard:
    """The address guard decides which addresses the provider may have."""

    def test_private_addresses_need_a_setting(self, client, forger, settings):
        settings.OIDC_ALLOW_PRIVATE_NETWORKS = False
        assert client.get("/dashboard/oidc/").status_code == 503
        assert forger.requests == []

    @pytest.mark.parametrize("url", ["http://169.254.169.254/keys", "http://metadata.google.internal/keys"])
    def test_addresses_of_cloud_credentials_are_never_called(self, forger, url):
        forger.metadata = {"jwks_uri": url}
        assert sign_in(Client(), forger).status_code == 503

    def test_a_redirect_is_not_followed(self, client, forger):
        from http.server import BaseHTTPRequestHandler  # noqa: F401 - the forger answers 302 at this path

        forger.metadata = {"jwks_uri": f"{forger.issuer}/authorize?redirect_uri={forger.issuer}/keys"}
        assert sign_in(client, forger).status_code == 503
        assert "/keys" not in forger.requests

    def test_every_connection_passes_the_guard(self, client, forger, monkeypatch):
        monkeypatch.setattr(Guard, "refusal_reason", lambda *_: "everything")
        assert client.get("/dashboard/oidc/").status_code == 503
        assert forger.requests == []


@pytest.mark.alone
def test_few_threads_wait_for_the_provider(forger, hang):
    """The others of a process answer other pages; beyond them, a sign-in is refused at once."""
    hang("/.well-known/openid-configuration")
    seconds: list[float] = []

    def call() -> None:
        from django.db import connection

        from dashboard.auth.oidc.errors import ProviderUnavailable
        from dashboard.auth.oidc.provider import Provider

        started = time.monotonic()
        with pytest.raises(ProviderUnavailable):
            Provider().check_documents()
        seconds.append(time.monotonic() - started)
        connection.close()

    threads = [threading.Thread(target=call) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len([took for took in seconds if took > 3]) == 2
    assert len([took for took in seconds if took < 3]) == 4
