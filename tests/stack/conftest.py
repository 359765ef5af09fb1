import pytest

from tests.stack.stack import running_stack

CLEAR = "TRUNCATE emails_email, webhooks_webhook, webhooks_webhookevent, inbox_caughtmail CASCADE"


@pytest.fixture
def stack(tmp_path):
    """A separate stack, for a test that breaks it."""
    with running_stack(tmp_path) as stack:
        yield stack


@pytest.fixture(scope="module")
def full_stack(tmp_path_factory):
    """The full service, shared by tests that do not break it."""
    with running_stack(tmp_path_factory.mktemp("stack")) as stack:
        stack.start("inbox", "worker", "beat", "web")
        yield stack


@pytest.fixture(scope="module")
def _module_stack(tmp_path_factory):
    with running_stack(tmp_path_factory.mktemp("stack")) as stack:
        stack.start("inbox", "web")
        yield stack


@pytest.fixture
def web_stack(_module_stack):
    """Web and inbox without emails, shared by tests that start and kill only other processes."""
    yield _module_stack
    _module_stack.stop(_module_stack.processes.keys() - {"inbox", "web"})
    _module_stack.execute(CLEAR)
