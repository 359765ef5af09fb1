"""Run a command of the project to its end."""

import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence

from embedded.errors import CannotStart
from embedded.locations import REPOSITORY
from embedded.processes.processes import end_with_parent


def run_command(arguments: Sequence[str], *, environment: Mapping[str, str], failure: str) -> str:
    """Return what `python ARGUMENTS` prints.

    failure: the sentence that goes before the command's own words when it fails.
    """
    done = subprocess.run(
        [sys.executable, *arguments],
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=dict(environment),
        cwd=REPOSITORY,
        preexec_fn=end_with_parent(signal.SIGTERM),
    )
    if done.returncode == 0:
        return done.stdout
    words = (done.stderr or done.stdout).strip().splitlines()
    raise CannotStart("\n".join([failure, *words[-15:]]))
