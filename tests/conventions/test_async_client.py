"""The asynchronous client of the Python library is generated from the synchronous one (bin/async_client.py)."""

import importlib.util

import pytest

from tests.stack.stack import REPOSITORY


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("async_client", REPOSITORY / "bin" / "async_client.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_asynchronous_modules_are_up_to_date(script):
    differing = [name for name in script.MODULES if script.generate(name) != path_of(script, name).read_text("utf-8")]
    assert differing == [], "run bin/async_client.py"


def test_only_the_transport_is_written_by_hand(script):
    modules = {path.stem for path in path_of(script, "client").parent.glob("*.py")}
    assert modules - set(script.MODULES) == {"__init__", "transport"}


def test_each_module_that_uses_the_transport_is_generated(script):
    modules = {path.stem for path in script.LIBRARY.glob("*.py") if "self._transport" in path.read_text("utf-8")}
    assert modules == set(script.MODULES)


def path_of(script, name):
    return script.LIBRARY / "aio" / f"{name}.py"
