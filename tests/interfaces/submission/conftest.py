import pytest
import trustme

from tests.conftest import make_account, make_domain, make_key
from tests.interfaces.submission.fixtures import run_submission, write_certificate


@pytest.fixture
def workspace(db):
    workspace = make_account("alice").workspace
    make_domain(workspace, "alice.example")
    return workspace


@pytest.fixture
def port(workspace, settings):
    with run_submission(settings, key=make_key(workspace, "sending_access")) as port:
        yield port


@pytest.fixture
def certificate(settings, tmp_path):
    """Set a certificate for localhost; return its authority."""
    authority = trustme.CA()
    settings.SUBMISSION_TLS_CERT, settings.SUBMISSION_TLS_KEY = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    write_certificate(settings, authority)
    return authority
