"""The wheel of the Python library, installed into an environment without this repository."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.node import run
from tests.stack.stack import REPOSITORY

pytestmark = pytest.mark.stack

SOURCE = REPOSITORY / "clients" / "python"


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """Return the Python of an environment with the wheel. Skips the test if a dependency cannot be fetched."""
    home = tmp_path_factory.mktemp("wheel")
    uv = str(Path(sys.executable).with_name("uv"))
    source = home / "source"
    shutil.copytree(SOURCE, source, ignore=shutil.ignore_patterns("dist", "*.egg-info", "__pycache__"))
    run(uv, "build", "--wheel", "--out-dir", str(home / "dist"), cwd=source)
    (wheel,) = (home / "dist").glob("*.whl")
    run(uv, "venv", "--python", sys.executable, str(home / "venv"), cwd=home)
    python = str(home / "venv" / "bin" / "python")
    install = [uv, "pip", "install", "--python", python, str(wheel)]
    done = subprocess.run(install, capture_output=True, text=True, timeout=300, check=False)
    if "Failed to fetch" in done.stderr or "dns error" in done.stderr:
        pytest.skip("uv cannot reach its index")
    assert done.returncode == 0, done.stderr
    return python


def test_the_wheel_works_alone_and_is_typed(python, service, tmp_path):
    program = (
        "import pathlib, sys, postrider\n"
        "assert pathlib.Path(postrider.__file__).with_name('py.typed').exists()\n"
        "assert 'django' not in sys.modules\n"
        "print(postrider.Postrider().me().workspace.id)\n"
    )
    assert run(python, "-c", program, cwd=tmp_path, env=clean(service)).startswith("ws_")


@pytest.mark.parametrize("example", ["send.py", "batch.py", "receive_webhooks.py"])
def test_the_examples_run(python, service, tmp_path, example):
    environment = {**clean(service), "FROM": "hello@demo.example"}
    assert "done" in run(python, str(SOURCE / "examples" / example), cwd=tmp_path, env=environment)


def clean(service) -> dict[str, str]:
    return {name: value for name, value in service.environment.items() if not name.startswith(("PYTHON", "DJANGO"))}


def test_the_library_names_one_version_everywhere():
    import tomllib

    import postrider

    project = tomllib.loads((SOURCE / "pyproject.toml").read_text())["project"]
    assert project["version"] == postrider.__version__
    assert f"## {postrider.__version__}" in (SOURCE / "CHANGELOG.md").read_text()
    assert os.fspath(SOURCE) in postrider.__file__
