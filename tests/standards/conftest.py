import json
from pathlib import Path

import pytest

from tests.standards import shapes


@pytest.fixture(scope="session")
def good(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return a file for every shape, signed."""
    return _written(tmp_path_factory.mktemp("good"), shapes.signed())


@pytest.fixture(scope="session")
def bad(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return a file for every tampered message."""
    return _written(tmp_path_factory.mktemp("bad"), shapes.tampered())


@pytest.fixture
def as_json(good: dict[str, Path], bad: dict[str, Path]) -> str:
    """Return the scripts' input: all files, and the DNS record of the key."""
    files = [str(path) for path in (*good.values(), *bad.values())]
    return json.dumps({"files": files, "record": {"name": shapes.RECORD_NAME, "value": shapes.record()}})


def _written(directory: Path, messages: dict[str, bytes]) -> dict[str, Path]:
    paths = {name: directory / f"{number}.eml" for number, name in enumerate(messages)}
    for name, message in messages.items():
        paths[name].write_bytes(message)
    return paths
