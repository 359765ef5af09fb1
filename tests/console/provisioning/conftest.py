"""Clients of the management API: keys to all workspaces and to one group."""

import pytest

from console.provisioning.services import issue_management_key
from tests.conftest import Api, make_key


def management_api(group: str = "") -> Api:
    _, secret = issue_management_key(name="platform", group=group)
    return Api(secret.text)


@pytest.fixture
def platform(db) -> Api:
    """A key to all workspaces."""
    return management_api()


@pytest.fixture
def reseller(db) -> Api:
    """A key to the workspaces of one group."""
    return management_api("resold")


@pytest.fixture
def owner_api(alice) -> Api:
    """Alice's key with the scope workspace_admin."""
    return Api(make_key(alice.workspace, "workspace_admin"))
