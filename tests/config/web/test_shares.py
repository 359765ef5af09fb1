"""Whose request it is, before a thread answers it."""

from ipaddress import ip_network

import pytest

from config.web.shares import share_of
from core.workspaces.api import authentication
from tests.conftest import Account, Api, make_key

pytestmark = pytest.mark.django_db
CLIENT = ("192.0.2.7", 4711)


def head(*fields: str) -> bytes:
    return "\r\n".join(["GET /v1/me HTTP/1.1", "Host: mail.example", *fields, "", ""]).encode()


@pytest.fixture(autouse=True)
def _new_process():
    authentication.workspace_ids.clear()


def test_all_keys_of_a_workspace_have_its_share(alice: Account):
    keys = [make_key(alice.workspace) for _ in range(2)]
    for key in keys:
        assert Api(key).get("/me").status_code == 200
    shares = {share_of(head(f"Authorization: Bearer {key}"), CLIENT) for key in keys}
    shares |= {share_of(head(f"X-Postmark-Server-Token: {keys[0]}"), CLIENT)}
    assert shares == {alice.workspace.id}


def test_a_key_that_was_not_accepted_has_a_share_of_its_own(alice: Account):
    key, other = make_key(alice.workspace), make_key(alice.workspace)
    assert Api(key).get("/me").status_code == 200
    assert share_of(head(f"Authorization: Bearer {other}"), CLIENT) not in {alice.workspace.id, "192.0.2.7"}


def test_a_session_and_basic_credentials_have_a_share_each(settings):
    shares = {
        share_of(head(f"Cookie: a=b; {settings.SESSION_COOKIE_NAME}=one"), CLIENT),
        share_of(head(f"Cookie: {settings.SESSION_COOKIE_NAME}=two; a=b"), CLIENT),
        share_of(head("Authorization: Basic eDp5"), CLIENT),
        share_of(head("Cookie: a=b"), CLIENT),
    }
    assert len(shares) == 4
    assert "192.0.2.7" in shares


def test_others_have_the_share_of_their_network(settings):
    settings.TRUSTED_PROXIES = [ip_network("192.0.2.7/32")]
    assert share_of(head("X-Forwarded-For: 203.0.113.9"), CLIENT) == "203.0.113.9"
    assert share_of(head("X-Forwarded-For: 203.0.113.9"), ("198.51.100.1", 1)) == "198.51.100.1"
    assert share_of(head(), ("2001:db8::1", 1, 0, 0)) == share_of(head(), ("2001:db8::2", 1, 0, 0))
    assert share_of(head(), "") == "unknown"
