"""Forged, replayed and mixed-up responses of a provider sign nobody in."""

# ruff: noqa: ARG005 - all forgeries have the same parameters

import base64
import hashlib
import json
import time
from functools import partial

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from django.test import Client
from joserfc.jwk import RSAKey

from console.dashboard.auth.oidc.provider import forget_documents
from core.workspaces.models import User
from tests.console.dashboard.auth.oidc.forging_provider import shared_secret
from tests.console.dashboard.auth.oidc.real_provider import CLIENT_ID, CLIENT_SECRET
from tests.console.dashboard.auth.oidc.steps import (
    ENDPOINTS,
    SIGNED_IN,
    begin,
    come_back,
    is_signed_in,
    prepare,
    sign_in,
    start_or_finish,
)
from tests.rows import each


def unsigned(claims, header) -> str:
    parts = (json.dumps(part).encode() for part in (header, claims))
    return ".".join([*(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts), ""])


def signed(forger, claims, header, *, key_of: str = "RS256") -> str:
    """Sign with RSA, whatever the header says: the library refuses to write such headers."""
    content = unsigned(claims, header)[:-1]
    private = forger.keys[key_of].get_op_key("sign")
    signature = private.sign(content.encode(), padding.PKCS1v15(), hashes.SHA256())
    return f"{content}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


def half_hash(text: str) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()[:16]).rstrip(b"=").decode()


def public_pem(forger) -> str:
    return forger.keys["RS256"].as_pem(private=False).decode()


def foreign_key() -> RSAKey:
    return RSAKey.generate_key(2048, {"kid": "rsa"})


# Each makes an ID token from the provider and valid claims.
FORGERIES = {
    "alg none": lambda forger, claims: unsigned(claims, {"alg": "none", "kid": "rsa"}),
    "alg None": lambda forger, claims: unsigned(claims, {"alg": "None"}),
    "no alg": lambda forger, claims: unsigned(claims, {"kid": "rsa"}),
    "alg is a list": lambda forger, claims: unsigned(claims, {"alg": ["RS256"], "kid": "rsa"}),
    "HS256 with the public key": lambda forger, claims: forger.sign(
        claims, algorithm="HS256", key=shared_secret(base64.b64encode(public_pem(forger).encode()).decode()), kid="rsa"
    ),
    "HS256 with the client secret": lambda forger, claims: forger.sign(
        claims, algorithm="HS256", key=shared_secret(CLIENT_SECRET), kid="rsa"
    ),
    "another key with the known id": lambda forger, claims: forger.sign(claims, key=foreign_key()),
    "a key in the header": lambda forger, claims: forger.sign(
        claims, key=(key := foreign_key()), jwk=key.as_dict(private=False)
    ),
    "unknown key id": lambda forger, claims: forger.sign(claims, kid="unknown"),
    "no key id among several keys": lambda forger, claims: signed(forger, claims, {"alg": "RS256"}),
    "the name of another algorithm": lambda forger, claims: signed(forger, claims, {"alg": "PS256", "kid": "rsa"}),
    "the name of another key": lambda forger, claims: signed(forger, claims, {"alg": "RS256", "kid": "ec"}),
    "an unknown critical header": lambda forger, claims: signed(
        forger, claims, {"alg": "RS256", "kid": "rsa", "crit": ["future"], "future": 1}
    ),
    "claims that are a list": lambda forger, claims: signed(forger, [], {"alg": "RS256", "kid": "rsa"}),
    "no signature": lambda forger, claims: forger.sign(claims).rpartition(".")[0] + ".",
    "changed claims": lambda forger, claims: ".".join(
        [
            forger.sign(claims).split(".")[0],
            unsigned({**claims, "sub": "root"}, {}).split(".")[1],
            forger.sign(claims).split(".")[2],
        ]
    ),
    "not a token": lambda forger, claims: "a.b.c",
    "a number": lambda forger, claims: 42,
    "a list": lambda forger, claims: ["a"],
    "null": lambda forger, claims: None,
}


def at_this_time(claims):
    """Return the claims with the values of functions of the time."""
    now = int(time.time())
    return {name: value(now) if callable(value) else value for name, value in claims.items()}


# Changed claims of a token with a valid signature.
WRONG_CLAIMS = {
    "another issuer": {"iss": "https://evil.example"},
    "no issuer": {"iss": None},
    "issuer is a list": {"iss": ["https://evil.example"]},
    "another audience": {"aud": "another-client"},
    "another audience, for this client": {"aud": "another-client", "azp": CLIENT_ID},
    "no audience": {"aud": None},
    "several audiences without azp": {"aud": [CLIENT_ID, "another-client"]},
    "azp of another client": {"aud": [CLIENT_ID, "another-client"], "azp": "another-client"},
    "expired": {"exp": lambda now: now - 61},
    "no expiry": {"exp": None},
    "expiry is a text": {"exp": "9999999999"},
    "issued in the future": {"iat": lambda now: now + 600, "exp": lambda now: now + 900},
    "no time": {"iat": None},
    "not valid yet": {"nbf": lambda now: now + 600},
    "another nonce": {"nonce": "another"},
    "no nonce": {"nonce": None},
    "no subject": {"sub": None},
    "empty subject": {"sub": ""},
    "subject is a number": {"sub": 42},
    "long subject": {"sub": "x" * 256},
    "at_hash of another access token": {"at_hash": half_hash("another")},
    "at_hash is a list": {"at_hash": ["x"]},
}


@each(("name", "forgery"), FORGERIES.items())
def test_a_forged_token_signs_nobody_in(client, forger, name, forgery):
    forget_documents()
    response = sign_in(client, forger, sign=partial(forgery, forger))
    assert (response.status_code, is_signed_in(client)) == (403, False)
    assert not User.objects.filter(email="grace@example.com").exists()


def test_the_forgeries_differ_from_a_valid_token_in_one_thing(client, forger):
    sign = partial(signed, forger, header={"alg": "RS256", "kid": "rsa"})
    assert sign_in(client, forger, sign=sign).url == SIGNED_IN


@each(("name", "claims"), WRONG_CLAIMS.items())
def test_a_token_with_wrong_claims_signs_nobody_in(client, forger, name, claims):
    response = sign_in(client, forger, **at_this_time(claims))
    assert (response.status_code, is_signed_in(client)) == (403, False)
    assert not User.objects.filter(email="grace@example.com").exists()


RIGHT_CLAIMS = {
    "the audience in a list": {"aud": [CLIENT_ID]},
    "several audiences with azp": {"aud": [CLIENT_ID, "another-client"], "azp": CLIENT_ID},
    "a clock that is half a minute ahead": {"iat": lambda now: now + 30},
    "issued five minutes ago, as Entra ID says": {"iat": lambda now: now - 300},
    "expired within the skew of clocks": {"exp": lambda now: now - 10},
    "at_hash": {"at_hash": half_hash("at")},
}


@each(("name", "claims"), RIGHT_CLAIMS.items())
def test_a_token_with_right_claims_signs_in(client, forger, name, claims):
    assert sign_in(client, forger, **at_this_time(claims)).url == SIGNED_IN
    assert is_signed_in(client)


@pytest.mark.filterwarnings("ignore:EdDSA is deprecated")
@each("algorithm", ["RS256", "ES256", "PS256", "EdDSA"])
def test_a_token_of_another_algorithm_signs_in(client, forger, algorithm):
    key = forger.keys["RS256"] if algorithm == "PS256" else None
    assert sign_in(client, forger, sign=partial(forger.sign, algorithm=algorithm, key=key)).url == SIGNED_IN


def test_the_algorithms_of_the_discovery_document_add_none(client, forger):
    forger.metadata = {"id_token_signing_alg_values_supported": ["none", "HS256"]}
    sign = partial(forger.sign, algorithm="HS256", key=shared_secret(CLIENT_SECRET), kid="rsa")
    assert sign_in(client, forger, sign=sign).status_code == 403


def test_the_request_has_pkce_state_and_nonce_and_the_exact_redirect(client, forger):
    asked = begin(client, query="?next=/dashboard/keys/")
    forger.id_token = forger.sign(forger.id_claims(asked["nonce"]))
    assert come_back(client, state=asked["state"], code="a code").url == "/dashboard/keys/"

    (sent,) = forger.token_requests
    assert asked["redirect_uri"] == sent["redirect_uri"] == "http://testserver/dashboard/oidc/callback"
    assert (asked["response_type"], asked["code_challenge_method"]) == ("code", "S256")
    challenge = base64.urlsafe_b64encode(hashlib.sha256(sent["code_verifier"].encode()).digest()).rstrip(b"=").decode()
    assert asked["code_challenge"] == challenge
    assert len(sent["code_verifier"]) >= 43
    again = begin(Client())
    assert {asked[name] for name in ("state", "nonce")}.isdisjoint({again[name] for name in ("state", "nonce")})


def test_a_response_is_accepted_once_in_a_new_session(client, forger):
    response = prepare(client, forger)
    before = client.session.session_key
    assert come_back(client, **response).status_code == 302
    assert client.session.session_key != before
    assert client.session.get_expiry_age() <= 12 * 3600
    client.logout()

    assert come_back(client, **response).status_code == 403
    assert forger.requests.count("/token") == 1


def test_a_response_of_another_browser_is_refused(client, forger):
    """Login CSRF: the state belongs to the session that began."""
    assert come_back(client, **prepare(Client(), forger)).status_code == 403
    assert "/token" not in forger.requests


def test_a_token_of_another_sign_in_is_refused(client, forger):
    assert sign_in(client, forger, nonce=begin(Client())["nonce"]).status_code == 403


def test_an_unknown_state_is_refused(client, forger):
    begin(client)
    for parameters in ({}, {"code": "a code"}, {"state": "unknown", "code": "a code"}, {"state": ""}):
        assert come_back(client, **parameters).status_code == 403, parameters
    assert "/token" not in forger.requests


def test_a_sign_in_of_one_site_does_not_end_at_the_other(client, forger):
    assert come_back(client, site="admin", **prepare(client, forger, site="dashboard")).status_code == 403
    assert "/token" not in forger.requests


def test_a_sign_in_that_took_too_long_is_refused(client, forger, monkeypatch):
    response = prepare(client, forger)
    monkeypatch.setattr("console.dashboard.auth.oidc.provider.PENDING_SECONDS", 0)

    assert come_back(client, **response).status_code == 403


def test_a_session_has_few_sign_ins_at_a_time(client, forger):
    first = begin(client)
    later = [begin(client) for _ in range(5)]
    assert come_back(client, state=first["state"], code="a code").status_code == 403

    forger.id_token = forger.sign(forger.id_claims(later[0]["nonce"]))
    assert come_back(client, state=later[0]["state"], code="a code").url == SIGNED_IN


def test_a_cancelled_sign_in_is_a_page(client, forger):
    asked = begin(client)

    cancelled = come_back(client, state=asked["state"], error="access_denied")

    assert cancelled.status_code == 403
    assert b"Try again" in cancelled.content
    assert "/token" not in forger.requests


class TestIssuerOfTheResponse:
    """RFC 9207: a response of one provider must not be taken for one of another."""

    def test_the_right_one_is_accepted(self, client, forger):
        forger.metadata = {"authorization_response_iss_parameter_supported": True}
        assert come_back(client, **prepare(client, forger), iss=forger.issuer).url == SIGNED_IN

    def test_another_one_is_refused_before_the_code_is_sent(self, client, forger):
        """So is a missing one, if the provider says that it sends it."""
        for is_announced in (False, True):
            forget_documents()
            forger.metadata = {"authorization_response_iss_parameter_supported": is_announced}
            response = prepare(client, forger)
            assert come_back(client, **response, iss="https://evil.example").status_code == 403, is_announced
        assert sign_in(client, forger).status_code == 403
        assert "/token" not in forger.requests

    def test_the_document_of_another_issuer_is_refused(self, client, forger):
        forger.metadata = {"issuer": "https://evil.example"}
        assert client.get("/dashboard/oidc/").status_code == 403


DOCUMENTS = {
    "no endpoint": {"token_endpoint": None},
    "a script as an endpoint": {"authorization_endpoint": "javascript:alert(1)"},
    "a list as an endpoint": {"jwks_uri": ["x"]},
    "a script to end the session": {"end_session_endpoint": "javascript:alert(1)"},
}


def test_an_invalid_discovery_document_is_refused(client, forger):
    for name, document in DOCUMENTS.items():
        forget_documents()
        forger.metadata = document
        assert client.get("/dashboard/oidc/").status_code == 403, name


def test_members_of_the_discovery_document_do_not_change_the_request(client, forger):
    forger.metadata = {"client_id": "evil", "redirect_uri": "https://evil.example", "scope": "all", "state": "fixed"}
    asked = begin(client)
    assert asked["client_id"] == CLIENT_ID
    assert asked["redirect_uri"] == "http://testserver/dashboard/oidc/callback"
    assert asked["state"] != "fixed"


def test_a_refused_code_is_a_page(client, forger):
    forger.responses["/token"] = 400, {"error": "invalid_grant"}
    assert sign_in(client, forger).status_code == 403


@each("path", ENDPOINTS)
@each(
    ("status", "body", "expected"),
    [
        *((200, body, {403, 503}) for body in ([], "x", 1, b"<html>", None)),
        *((status, b"<html>", {503}) for status in (500, 502, 503)),
    ],
)
def test_any_response_of_the_provider_is_a_page(client, forger, path, status, body, expected):
    forget_documents()
    forger.responses = {path: (status, body)}
    response = start_or_finish(client, forger)
    assert response.status_code in expected
    assert b"Request" in response.content
    assert not is_signed_in(client)


class TestKeys:
    def test_they_are_fetched_once(self, client, forger):
        for _ in range(3):
            assert sign_in(Client(), forger).url == SIGNED_IN
        assert forger.requests.count("/keys") == 1
        assert forger.requests.count("/.well-known/openid-configuration") == 1

    def test_they_are_fetched_again_for_a_new_key(self, client, forger):
        forger.published = ["RS256"]
        assert sign_in(Client(), forger).url == SIGNED_IN
        forger.published = ["RS256", "ES256"]
        assert sign_in(client, forger, sign=partial(forger.sign, algorithm="ES256")).url == SIGNED_IN
        assert forger.requests.count("/keys") == 2

    def test_they_are_fetched_at_most_once_a_minute_for_unknown_ones(self, forger):
        for _ in range(4):
            assert sign_in(Client(), forger, sign=partial(forger.sign, kid="unknown")).status_code == 403
        assert forger.requests.count("/keys") == 2


def test_a_sign_in_ends_at_a_path_of_this_service(forger):
    for target in ("https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)"):
        assert sign_in(Client(), forger, query=f"?next={target}").url == SIGNED_IN, target
