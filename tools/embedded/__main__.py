"""Command line of the launcher: `python -m tools.embedded run|test|manage`, called by the scripts in bin/."""

import sys

from tools.embedded.errors import CannotStart
from tools.embedded.manage import manage
from tools.embedded.processes.signals import StopRequested
from tools.embedded.run import run
from tools.embedded.terminal import print_status
from tools.embedded.test import test

COMMANDS = {"run": run, "test": test, "manage": manage}


def main() -> int:
    """Run the named command and return its exit code; print user errors without a traceback."""
    command = COMMANDS.get(sys.argv[1]) if len(sys.argv) > 1 else None
    if command is None:
        print_status("Usage: python -m tools.embedded run|test|manage")
        return 2
    try:
        return command(sys.argv[2:])
    except CannotStart as reason:
        print_status(str(reason))
        return 1
    except OSError as error:
        print_status(f"{error.filename or 'Launcher'}: {error.strerror or error}.")
        return 1
    except (StopRequested, KeyboardInterrupt) as stop:
        return 128 + getattr(stop, "number", 2)


if __name__ == "__main__":
    sys.exit(main())
