import pytest

from core.lib.registry import Registry


def test_a_name_is_registered_once():
    registry = Registry({"standard": 1})
    with pytest.raises(ValueError, match="standard is registered already"):
        registry.register("standard", 2)
    assert registry == {"standard": 1}
