import pytest

from tests.conftest import make_account, make_domain
from tests.inbound import stage


@pytest.fixture
def workspace(db):
    workspace = make_account("alice").workspace
    make_domain(workspace, "alice.example")
    return workspace


@pytest.fixture
def port():
    with stage.receiver() as port:
        yield port
