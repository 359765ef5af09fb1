"""Collected static files, as on a production server."""

import functools
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.stack.stack import REPOSITORY


@functools.cache
def collected_files() -> Path:
    """Run `manage.py collectstatic`, once per process; return its directory."""
    directory = tempfile.mkdtemp(prefix="postrider-static-")
    environment = {**os.environ, "STATIC_ROOT": directory}
    command = [sys.executable, "manage.py", "collectstatic", "--noinput", "--verbosity", "0"]
    subprocess.run(command, cwd=REPOSITORY, env=environment, check=True)
    return Path(directory)
