import json

import pytest

from console.dashboard.auth.oidc.provider import forget_documents
from tests.conftest import Account
from tests.console.dashboard.auth.oidc.forging_provider import forging_provider
from tests.console.dashboard.auth.oidc.real_provider import CLIENT_ID, CLIENT_SECRET, running_provider


def rules_of(account: Account) -> list[dict[str, object]]:
    """Return rules by groups: staff, and the roles of a workspace."""
    workspace = account.workspace.id
    return [
        {"claim": "groups", "value": "mail-admins", "staff": True},
        {"claim": "groups", "value": "mail", "workspace": workspace, "role": "member"},
        {"claim": "groups", "value": "mail-owners", "workspace": workspace, "role": "owner"},
    ]


@pytest.fixture(autouse=True)
def _no_documents():
    forget_documents()
    yield
    forget_documents()


@pytest.fixture
def configure(settings, tmp_path):
    """Return a function that makes an issuer the identity provider, with rules for the roles file."""

    def use(issuer: str, *rules: dict[str, object], public_url: str = "http://testserver", **others: object) -> None:
        roles = tmp_path / "roles.json"
        roles.write_text(json.dumps(rules), encoding="utf-8")
        values = {
            "OIDC_ISSUER": issuer,
            "OIDC_CLIENT_ID": CLIENT_ID,
            "OIDC_CLIENT_SECRET": CLIENT_SECRET,
            "OIDC_LABEL": "Example ID",
            "OIDC_ALLOW_PRIVATE_NETWORKS": True,
            "OIDC_ROLES_FILE": str(roles),
            "PUBLIC_URL": public_url,
            **others,
        }
        for name, value in values.items():
            setattr(settings, name, value)

    return use


@pytest.fixture(scope="module")
def provider(tmp_path_factory, live_server):
    with running_provider(tmp_path_factory.mktemp("provider"), public_url=live_server.url) as running:
        yield running


@pytest.fixture
def forger(configure, alice):
    """A forging provider whose group `mail` makes members of Alice's workspace."""
    with forging_provider() as running:
        running.claims["groups"] = ["mail"]
        configure(running.issuer, *rules_of(alice))
        yield running
