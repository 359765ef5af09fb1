"""From nothing to a Python with everything installed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from embedded.locations import REPOSITORY
from tests.embedded.conftest import StandIn

FIND_PYTHON = ["/bin/sh", str(REPOSITORY / "embedded" / "find_python.sh")]


def find_python(**environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(FIND_PYTHON, check=False, capture_output=True, text=True, env=environment)


def test_python_is_tried_and_not_only_looked_up(stand_in: StandIn) -> None:
    path = stand_in.path / "path"
    path.mkdir()
    for name, script in (("python3.13", "exit 127"), ("python3", f'exec "{sys.executable}" "$@"')):
        (path / name).write_text(f"#!/bin/sh\n{script}\n")
        (path / name).chmod(0o755)
    assert find_python(PATH=str(path)).stdout == f"{path}/python3\n"


@pytest.mark.skipif(not Path("/usr/bin/python3").exists(), reason="the distribution has no Python")
def test_the_distributions_python_goes_first_where_the_path_has_it(stand_in: StandIn) -> None:
    (stand_in.path / "python3.13").symlink_to(sys.executable)
    assert find_python(PATH=f"{stand_in.path}:/usr/bin").stdout == "/usr/bin/python3\n"
    assert find_python(PATH=f"{stand_in.path}:/usr/bin", PYTHON="python3.13").stdout == f"{stand_in.path}/python3.13\n"


def test_no_python_and_a_wrong_python_are_sentences() -> None:
    nothing = find_python(PATH="/nowhere")
    assert nothing.returncode == 1
    assert nothing.stderr.startswith("Postrider needs Python 3.11 or newer")
    wrong = find_python(PATH=os.environ["PATH"], PYTHON="/bin/false")
    assert wrong.returncode == 1
    assert wrong.stderr.startswith("PYTHON=/bin/false is not a Python 3.11 or newer")


@pytest.mark.long
def test_a_fresh_repository_installs_once_and_heals_a_broken_environment(stand_in: StandIn) -> None:
    environment = stand_in.path / ".venv"
    environment.unlink()
    first = stand_in.start("manage", "migrate")
    assert "Creating .venv for Python" in first.communicate(timeout=600)[1]
    assert first.returncode == 0
    assert stand_in.finish("manage", "count").stderr == ""
    (environment / "bin" / "python").unlink()
    broken = stand_in.start("manage", "count")
    assert "Creating .venv for Python" in broken.communicate(timeout=600)[1]
    assert broken.returncode == 0
