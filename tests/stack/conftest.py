import pytest

from tests.stack.stack import running_stack

CLEAR = """
TRUNCATE emails_email, webhooks_webhook, webhooks_webhookevent, inbox_caughtmail, suppressions_suppression CASCADE
"""


@pytest.fixture
def stack(tmp_path):
    """A separate stack, for a test that breaks it."""
    with running_stack(tmp_path) as stack:
        yield stack


@pytest.fixture(scope="package")
def full_stack(tmp_path_factory):
    """The full service, shared by tests that do not break it; each looks at its own emails only."""
    with running_stack(tmp_path_factory.mktemp("stack")) as stack:
        stack.start("inbox", "worker", "beat", "web")
        yield stack


@pytest.fixture(scope="package")
def _shared_stack(tmp_path_factory):
    with running_stack(tmp_path_factory.mktemp("stack")) as stack:
        stack.start("inbox", "web")
        yield stack


@pytest.fixture
def web_stack(_shared_stack):
    """Web and inbox without emails, shared by tests that start and kill only other processes."""
    yield _shared_stack
    _shared_stack.stop(_shared_stack.processes.keys() - {"inbox", "web"})
    _shared_stack.execute(CLEAR)
