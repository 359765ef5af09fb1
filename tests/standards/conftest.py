import json
from pathlib import Path

import pytest

from tests.standards import shapes


@pytest.fixture(scope="session")
def good(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Every shape, signed, as a file."""
    return _written(tmp_path_factory.mktemp("good"), shapes.signed())


@pytest.fixture(scope="session")
def bad(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """One message after each attack, as a file."""
    return _written(tmp_path_factory.mktemp("bad"), shapes.tampered())


@pytest.fixture
def as_json(good: dict[str, Path], bad: dict[str, Path]) -> str:
    """What the scripts read: all the files, and the record of the key."""
    files = [str(path) for path in (*good.values(), *bad.values())]
    return json.dumps({"files": files, "record": {"name": shapes.RECORD_NAME, "value": shapes.record()}})


def _written(directory: Path, messages: dict[str, bytes]) -> dict[str, Path]:
    paths = {name: directory / f"{number}.eml" for number, name in enumerate(messages)}
    for name, message in messages.items():
        paths[name].write_bytes(message)
    return paths
