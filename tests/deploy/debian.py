"""Debian root file systems for tests of the installation, made with mmdebstrap and kept outside the tree."""

import functools
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.stack.stack import REPOSITORY
from tests.standards import tools

BUILD_SECONDS = 900


def root_archive(variant: str, *packages: str) -> Path:
    """Return a tar archive of Debian 12 with these packages, made once per machine."""
    archive = tools.CACHE / f"debian-12-{variant}-{'-'.join(packages)}.tar"
    if not archive.exists():
        archive.parent.mkdir(parents=True, exist_ok=True)
        fresh = archive.with_suffix(".new.tar")
        mmdebstrap = tools.program("mmdebstrap", package="mmdebstrap")
        run(mmdebstrap, f"--variant={variant}", f"--include={','.join(packages)}", "bookworm", fresh)
        fresh.rename(archive)
    return archive


def run(*command: str | Path, **options: Any) -> str:
    """Run a command; return its output. Raises AssertionError with its output if it fails."""
    output: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    done = subprocess.run(command, **output, timeout=BUILD_SECONDS, check=False, **options)
    assert done.returncode == 0, f"{shlex.join(map(str, command))}\n{done.stdout[-4000:]}"
    return str(done.stdout)


def copy_source(target: Path) -> Path:
    """Copy the files of the repository as they are in the work tree, without those that git ignores."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=REPOSITORY, check=True, capture_output=True,
    ).stdout  # fmt: skip
    target.mkdir(parents=True, exist_ok=True)
    names = b"\0".join(name for name in listed.split(b"\0") if (REPOSITORY / os.fsdecode(name)).exists())
    run("sh", "-c", f"tar -c --null -T - | tar -x -C {target}", cwd=REPOSITORY, input=names.decode())
    return target


@functools.cache
def pip_settings() -> dict[str, str]:
    """Return the settings of this machine's pip, such as the address of an index."""
    listed = run(sys.executable, "-m", "pip", "config", "list")
    rows = re.findall(r"^(?:global|user|:env:)\.([\w-]+)='(.*)'$", listed, re.MULTILINE)
    # The lock files name every version, and a file of constraints would not exist in the root.
    return {name: value for name, value in rows if name != "constraint"}


def pip_configuration() -> str:
    return "\n".join(["[global]", *(f"{name} = {value}" for name, value in pip_settings().items()), ""])


def pip_directories() -> list[Path]:
    """Return the local directories that pip's settings name: of certificates, indexes and wheels."""
    paths = {
        Path(*Path(path).parts[:3]) for value in pip_settings().values() for path in re.findall(r"/[\w./-]+", value)
    }
    return sorted(path for path in paths if path.is_dir())
