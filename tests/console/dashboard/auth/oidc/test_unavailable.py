"""A provider that hangs, is down, or is not allowed to be called: a page within the time of the requests of a page."""

import threading
import time

import pytest
from django.test import Client

from console.dashboard.auth.oidc.provider import forget_documents
from core.lib.network.address_guard import Guard
from tests.console.dashboard.auth.oidc.steps import (
    ENDPOINTS,
    come_back,
    is_signed_in,
    prepare,
    sign_in,
    start_or_finish,
)
from tests.console.dashboard.conftest import shown_text
from tests.stack.stack import wait_for

SENTENCE = "Example ID does not answer: try again in a minute."


@pytest.fixture
def end():
    """The end of the hanging requests: that of the test, unless it sets it."""
    end = threading.Event()
    yield end
    end.set()


@pytest.fixture
def hang(forger, end):
    """Return a function that makes a path hang for a minute, or until the end."""

    def hang(path):
        forger.responses[path] = lambda: (503 * end.wait(60), {})

    return hang


@pytest.fixture
def timeout(monkeypatch):
    """A short time for the requests of a page."""
    monkeypatch.setattr("console.dashboard.auth.oidc.provider.TIMEOUT_SECONDS", 1.0)
    return 1.0


@pytest.mark.parametrize("path", ENDPOINTS)
def test_a_provider_that_hangs_is_given_up_in_time(client, forger, hang, timeout, path):
    hang(path)
    started = time.monotonic()

    response = start_or_finish(client, forger)

    assert response.status_code == 503
    assert timeout <= time.monotonic() - started < 60
    assert SENTENCE in shown_text(response)
    assert "Try again" in shown_text(response)
    assert "Sign in with a password" in shown_text(response)
    assert not is_signed_in(client)


def test_all_requests_of_a_page_share_the_time(client, forger, timeout):
    response = prepare(client, forger)
    answers = {"/token": {"access_token": "at", "token_type": "Bearer", "id_token": forger.id_token}, "/keys": {}}
    for path, answer in answers.items():
        forger.responses[path] = lambda answer=answer: (time.sleep(0.6 * timeout), (200, answer))[1]

    assert come_back(client, **response).status_code == 503
    assert {"/token", "/keys"} <= {*forger.requests}


def test_a_provider_that_is_down_is_a_page_that_offers_a_password(client, forger, settings):
    settings.OIDC_ISSUER = "http://127.0.0.1:1"
    for settings.PASSWORDS, is_offered in (("on", True), ("off", False)):
        text = shown_text(client.get("/dashboard/oidc/"))
        assert (SENTENCE in text, "Sign in with a password" in text) == (True, is_offered)


def test_a_large_response_is_not_read(client, forger):
    for path in ("/token", "/.well-known/openid-configuration"):
        forget_documents()
        forger.responses = {path: (200, b" " * 2_000_000)}
        assert start_or_finish(client, forger).status_code == 503, path


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

    def test_neither_addresses_of_cloud_credentials_nor_redirects_are_called(self, forger):
        # The forger answers 302 at this path.
        redirect = f"{forger.issuer}/authorize?redirect_uri={forger.issuer}/keys"
        for url in ("http://169.254.169.254/keys", "http://metadata.google.internal/keys", redirect):
            forget_documents()
            forger.metadata = {"jwks_uri": url}
            assert sign_in(Client(), forger).status_code == 503, url
        assert "/keys" not in forger.requests

    def test_every_connection_passes_the_guard(self, client, forger, monkeypatch):
        monkeypatch.setattr(Guard, "refusal_reason", lambda *_: "everything")
        assert client.get("/dashboard/oidc/").status_code == 503
        assert forger.requests == []


def test_few_threads_wait_for_the_provider(forger, hang, end, monkeypatch):
    """The others of a process answer other pages; beyond them, a sign-in is refused at once."""
    monkeypatch.setattr("console.dashboard.auth.oidc.provider.TIMEOUT_SECONDS", 60.0)
    hang("/.well-known/openid-configuration")
    refused: list[int] = []

    def call() -> None:
        from django.db import connection

        from console.dashboard.auth.oidc.errors import ProviderUnavailable
        from console.dashboard.auth.oidc.provider import Provider

        with pytest.raises(ProviderUnavailable):
            Provider().check_documents()
        refused.append(1)
        connection.close()

    threads = [threading.Thread(target=call) for _ in range(6)]
    for thread in threads:
        thread.start()
    # Two hang.
    wait_for(lambda: (len(refused), len(forger.requests)) == (4, 2), seconds=30, what="the refusal of the others")
    end.set()
    for thread in threads:
        thread.join(60)
    assert (len(refused), len(forger.requests)) == (6, 2)
