import pytest

from tests.stack.stack import running_stack


@pytest.fixture
def stack(tmp_path):
    """A stack of its own, for a test that breaks it."""
    with running_stack(tmp_path) as stack:
        yield stack


@pytest.fixture(scope="module")
def whole_stack(tmp_path_factory):
    """The whole service, shared by tests that only use it."""
    with running_stack(tmp_path_factory.mktemp("stack")) as stack:
        stack.start("inbox", "worker", "beat", "web")
        yield stack
