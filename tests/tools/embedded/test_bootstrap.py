"""Finding a Python and installing the virtual environment."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.tools.embedded.conftest import FakeProject
from tools.embedded.locations import REPOSITORY

FIND_PYTHON = ["/bin/sh", str(REPOSITORY / "tools" / "embedded" / "find_python.sh")]


def find_python(**environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(FIND_PYTHON, check=False, capture_output=True, text=True, env=environment)


def test_a_python_is_executed_before_it_is_chosen(fake_project: FakeProject) -> None:
    path = fake_project.path / "path"
    path.mkdir()
    for name, script in (("python3.13", "exit 127"), ("python3", f'exec "{sys.executable}" "$@"')):
        (path / name).write_text(f"#!/bin/sh\n{script}\n")
        (path / name).chmod(0o755)
    assert find_python(PATH=str(path)).stdout == f"{path}/python3\n"


@pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="the distribution has no Python")
def test_the_distributions_python_is_preferred_when_it_is_on_the_path(fake_project: FakeProject) -> None:
    (fake_project.path / "python3.13").symlink_to(sys.executable)
    assert find_python(PATH=f"{fake_project.path}:/usr/bin").stdout == "/usr/bin/python3\n"
    assert (
        find_python(PATH=f"{fake_project.path}:/usr/bin", PYTHON="python3.13").stdout
        == f"{fake_project.path}/python3.13\n"
    )


def test_a_missing_or_invalid_python_is_explained() -> None:
    missing = find_python(PATH="/nowhere")
    assert missing.returncode == 1
    assert missing.stderr.startswith("Postrider needs Python 3.11 or newer")
    invalid = find_python(PATH=os.environ["PATH"], PYTHON="/bin/false")
    assert invalid.returncode == 1
    assert invalid.stderr.startswith("PYTHON=/bin/false is not a Python 3.11 or newer")


@pytest.mark.long
def test_a_fresh_repository_installs_once_and_repairs_a_broken_environment(fake_project: FakeProject) -> None:
    environment = fake_project.path / ".venv"
    environment.unlink()
    first = fake_project.start("manage", "migrate")
    output = first.communicate(timeout=600)[1]
    assert "Creating .venv for Python" in output
    # Downloads and the installation itself have ten lines each.
    assert [output.count(f"{label}: 100 %") for label in ("Downloads", "Installation")] == [1, 1]
    assert first.returncode == 0
    assert fake_project.run("manage", "count").stderr == ""
    (environment / "bin" / "python").unlink()
    broken = fake_project.start("manage", "count")
    assert "Creating .venv for Python" in broken.communicate(timeout=600)[1]
    assert broken.returncode == 0
