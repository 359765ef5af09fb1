"""The steps of a sign-in with a forging provider: begin it, and come back with a response of the provider."""

from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

from django.test import Client

from tests.console.dashboard.auth.oidc.forging_provider import ForgingProvider

SIGNED_IN = "/dashboard/"
ENDPOINTS = ["/.well-known/openid-configuration", "/keys", "/token", "/userinfo"]


def begin(client: Client, *, site: str = "dashboard", query: str = "") -> dict[str, str]:
    """Return the parameters that the browser takes to the provider."""
    response = client.get(f"/{site}/oidc/{query}")
    assert response.status_code == 302, response.content.decode()
    return {name: values[0] for name, values in parse_qs(urlsplit(response.url).query).items()}


def come_back(client: Client, *, site: str = "dashboard", **parameters: str) -> Any:
    return client.get(f"/{site}/oidc/callback", parameters)


def prepare(
    client: Client,
    forger: ForgingProvider,
    *,
    site: str = "dashboard",
    query: str = "",
    sign: Callable[[dict[str, Any]], Any] | None = None,
    **changed: Any,
) -> dict[str, str]:
    """Begin a sign-in, and let the provider issue an ID token; return the parameters with which to come back.

    sign: makes the token of its claims, in place of the provider. changed: replaces claims.
    """
    asked = begin(client, site=site, query=query)
    forger.id_token = (sign or forger.sign)(forger.id_claims(asked["nonce"], **changed))
    return {"state": asked["state"], "code": "a code"}


def sign_in(client: Client, forger: ForgingProvider, *, site: str = "dashboard", **options: Any) -> Any:
    """Sign in, with the options of prepare()."""
    return come_back(client, site=site, **prepare(client, forger, site=site, **options))


def start_or_finish(client: Client, forger: ForgingProvider) -> Any:
    """Sign in as far as it goes; the userinfo endpoint is asked for the address."""
    forger.claims.pop("email", None)
    response = client.get("/dashboard/oidc/")
    return response if response.status_code != 302 else sign_in(client, forger)


def is_signed_in(client: Client) -> bool:
    return "_auth_user_id" in client.session
