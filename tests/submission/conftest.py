import pytest

from tests.conftest import make_account, make_domain, make_key
from tests.submission.fixtures import run_submission


@pytest.fixture
def workspace(db):
    workspace = make_account("alice").workspace
    make_domain(workspace, "alice.example")
    return workspace


@pytest.fixture
def port(workspace, settings):
    with run_submission(settings, key=make_key(workspace, "sending_access")) as port:
        yield port
