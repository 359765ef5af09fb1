"""The steps of a sign-in with a forging provider: begin it, and come back with a response of the provider."""

from typing import Any
from urllib.parse import parse_qs, urlsplit

from django.test import Client

from tests.dashboard.auth.oidc.forging_provider import ForgingProvider

SIGNED_IN = "/dashboard/"


def begin(client: Client, *, site: str = "dashboard", query: str = "") -> dict[str, str]:
    """Return the parameters that the browser takes to the provider."""
    response = client.get(f"/{site}/oidc/{query}")
    assert response.status_code == 302, response.content.decode()
    return {name: values[0] for name, values in parse_qs(urlsplit(response.url).query).items()}


def come_back(client: Client, *, site: str = "dashboard", **parameters: str) -> Any:
    return client.get(f"/{site}/oidc/callback", parameters)


def sign_in(
    client: Client, forger: ForgingProvider, *, site: str = "dashboard", query: str = "", **changed: Any
) -> Any:
    """Sign in; `changed` replaces claims of the ID token."""
    asked = begin(client, site=site, query=query)
    forger.id_token = forger.sign(forger.id_claims(asked["nonce"], **changed))
    return come_back(client, site=site, state=asked["state"], code="a code")


def is_signed_in(client: Client) -> bool:
    return "_auth_user_id" in client.session
