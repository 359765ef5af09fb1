"""`python -m embedded run|test|manage`: what bin/run, bin/test and bin/manage call."""

import sys

from embedded.errors import CannotStart
from embedded.manage import manage
from embedded.processes.signals import Ended
from embedded.run import run
from embedded.terminal import say
from embedded.test import test

COMMANDS = {"run": run, "test": test, "manage": manage}


def main() -> int:
    """Return the exit code; whatever a user can cause ends in a sentence."""
    command = COMMANDS.get(sys.argv[1]) if len(sys.argv) > 1 else None
    if command is None:
        say("Say which: python -m embedded run, test, or manage.")
        return 2
    try:
        return command(sys.argv[2:])
    except CannotStart as reason:
        say(str(reason))
        return 1
    except OSError as error:
        say(f"{error.filename or 'The launcher'}: {error.strerror or error}.")
        return 1
    except (Ended, KeyboardInterrupt) as ended:
        return 128 + getattr(ended, "number", 2)


if __name__ == "__main__":
    sys.exit(main())
