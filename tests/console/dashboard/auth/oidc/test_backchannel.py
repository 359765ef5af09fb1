"""Back-channel logout: a valid logout token ends all sessions of a person, once; no other token does."""

import pytest
from django.test import Client

from core.workspaces.identities import delete_expired_logout_tokens, link_identity
from core.workspaces.models import AuditEntry, UsedLogoutToken
from tests.conftest import PASSWORD, make_key
from tests.console.dashboard.auth.oidc.forging_provider import LOGOUT_EVENT
from tests.console.dashboard.auth.oidc.steps import sign_in
from tests.console.dashboard.auth.oidc.test_tokens import at_this_time
from tests.console.dashboard.auth.test_sign_in import is_signed_in
from tests.console.dashboard.auth.test_sign_in import sign_in as sign_in_with_password

URL = "/oidc/backchannel"


@pytest.fixture
def sessions(forger):
    """Two sessions of Grace, who signed in with the provider."""
    clients = [Client(), Client()]
    for client in clients:
        assert sign_in(client, forger).status_code == 302
    return clients


def log_out(forger, token=None, **changed):
    return Client(enforce_csrf_checks=True).post(
        URL, {"logout_token": token or forger.sign(forger.logout_claims(**changed), typ="logout+jwt")}
    )


def test_all_sessions_of_the_person_end(forger, sessions, owner, alice):
    assert all(map(is_signed_in, sessions))

    response = log_out(forger)

    assert (response.status_code, response.headers["Cache-Control"].count("no-store")) == (200, 1)
    assert not any(map(is_signed_in, sessions))
    assert is_signed_in(owner)
    assert AuditEntry.objects.filter(workspace=alice.workspace, act="sign_out_by_provider").exists()


def test_so_do_those_by_password_but_not_the_keys(forger, alice, client):
    link_identity(alice.owner, issuer=forger.issuer, subject="grace")
    sign_in_with_password(client, alice.owner.email, PASSWORD)
    key = make_key(alice.workspace)

    log_out(forger)

    assert not is_signed_in(client)
    assert Client().get("/v1/me", headers={"authorization": f"Bearer {key}"}).status_code == 200


def test_a_token_is_valid_once_and_the_person_can_sign_in_again(forger, sessions):
    token = forger.sign(forger.logout_claims())
    assert log_out(forger, token).status_code == 200
    assert sign_in(sessions[0], forger).status_code == 302

    assert log_out(forger, token).status_code == 400
    assert [is_signed_in(session) for session in sessions] == [True, False]


def test_used_tokens_are_forgotten_after_they_expire(forger, sessions):
    log_out(forger)
    delete_expired_logout_tokens()
    assert UsedLogoutToken.objects.count() == 1
    UsedLogoutToken.objects.update(expires_at="2020-01-01T00:00:00Z")
    delete_expired_logout_tokens()
    assert UsedLogoutToken.objects.count() == 0


WRONG_CLAIMS = {
    "another issuer": {"iss": "https://evil.example"},
    "another audience": {"aud": "another-client"},
    "no audience": {"aud": None},
    "no subject": {"sub": None},
    "no id": {"jti": None},
    "id is a number": {"jti": 1},
    "no time": {"iat": None},
    "no expiry": {"exp": None},
    "expired": {"exp": lambda now: now - 61},
    "valid for days": {"exp": lambda now: now + 86_400},
    "in the future": {"iat": lambda now: now + 600, "exp": lambda now: now + 700},
    "no events": {"events": None},
    "events is a list": {"events": [LOGOUT_EVENT]},
    "another event": {"events": {"https://example.com/event": {}}},
    "the event is a text": {"events": {LOGOUT_EVENT: "yes"}},
    "a nonce": {"nonce": "x"},
    "an empty nonce": {"nonce": ""},
}


def test_no_other_token_ends_anything(forger, sessions):
    tokens = {
        name: forger.sign(forger.logout_claims(**at_this_time(claims)), typ="logout+jwt")
        for name, claims in WRONG_CLAIMS.items()
    }
    tokens |= {text[:9]: text for text in ("x", "a.b.c", "e30.e30.", "x" * 200_000)}
    tokens["an ID token"] = forger.sign(forger.id_claims("n"))
    accepted = []
    for name, token in tokens.items():
        response = log_out(forger, token)
        if (response.status_code, response.json()["error"]) != (400, "invalid_request"):
            accepted.append((name, response.status_code))

    assert accepted == []
    assert Client().post(URL).status_code == 400
    assert is_signed_in(sessions[0])


def test_tokens_of_strangers_do_not_make_this_service_call_the_provider(forger, sessions):
    before = len(forger.requests)
    for _ in range(5):
        assert log_out(forger, forger.sign(forger.logout_claims(), kid="unknown")).status_code == 400
    assert len(forger.requests) <= before + 1


def test_a_person_without_an_account_is_nobody(forger):
    assert log_out(forger).status_code == 200


def test_other_methods_and_installations_without_a_provider_have_none(forger, client, settings):
    assert client.get(URL).status_code == 405
    settings.OIDC_ISSUER = ""
    assert client.post(URL).status_code == 404


def test_a_token_that_cannot_be_checked_is_503(forger, sessions):
    from console.dashboard.auth.oidc.provider import forget_documents

    forget_documents()
    forger.responses["/keys"] = 500, {}
    assert log_out(forger).status_code == 503
    assert is_signed_in(sessions[0])
