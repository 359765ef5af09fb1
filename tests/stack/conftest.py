import pytest

from tests.stack.stack import running_stack


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
