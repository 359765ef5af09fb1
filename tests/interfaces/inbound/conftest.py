import pytest

from tests.conftest import make_account, make_domain
from tests.interfaces.inbound import fixtures


@pytest.fixture
def workspace(db):
    workspace = make_account("alice").workspace
    make_domain(workspace, "alice.example")
    return workspace


@pytest.fixture
def port():
    with fixtures.run_inbound() as port:
        yield port
