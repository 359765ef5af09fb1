"""Management commands that the launcher runs to completion."""

import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence

from tools.embedded.errors import CannotStart
from tools.embedded.locations import REPOSITORY
from tools.embedded.processes.processes import signal_on_parent_exit


def run_command(*arguments: str, environment: Mapping[str, str], failure: str) -> str:
    """Run `manage.py ARGUMENTS` and return its output.

    Raises CannotStart when it fails; the message is `failure` and the last lines of the command's output.
    """
    done = _run(arguments, environment, stderr=subprocess.PIPE)
    if done.returncode == 0:
        return done.stdout
    lines = (done.stderr or done.stdout).strip().splitlines()
    raise CannotStart("\n".join([failure, *lines[-15:]]))


def run_with_progress(*arguments: str, environment: Mapping[str, str], failure: str) -> None:
    """Run `manage.py ARGUMENTS`, which shows its progress and its errors on standard error.

    Raises CannotStart(failure) when it fails.
    """
    if _run(arguments, environment, stderr=None).returncode != 0:
        raise CannotStart(failure)


def _run(
    arguments: Sequence[str], environment: Mapping[str, str], *, stderr: int | None
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "manage.py", *arguments],
        check=False,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        env=dict(environment),
        cwd=REPOSITORY,
        preexec_fn=signal_on_parent_exit(signal.SIGTERM),
    )
