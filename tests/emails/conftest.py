import pytest

from tests.conftest import Account, make_domain
from workspaces.models import Workspace


@pytest.fixture
def workspace(alice: Account) -> Workspace:
    """Alice's workspace, with the registered domain alice.example."""
    make_domain(alice.workspace, "alice.example")
    return alice.workspace
