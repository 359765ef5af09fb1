"""Processes of the service, with the time that each may take to stop."""

import signal
from dataclasses import dataclass

from embedded.processes.processes import StopSequence


@dataclass(frozen=True)
class Program:
    """A process of the service. arguments: for `python`, in the repository."""

    name: str
    arguments: tuple[str, ...]
    stop_sequence: StopSequence


# SMTP sessions get 60 s to finish.
PROGRAMS = (Program("service", ("manage.py", "serve"), ((signal.SIGTERM, 65), (signal.SIGKILL, 5))),)

# Commands that run to completion before these processes start.
MIGRATE = ("manage.py", "migrate", "--noinput")
COLLECT_STATIC = ("manage.py", "collectstatic", "--noinput", "--verbosity", "0")
# Prints one JSON object; runs only when there is no demo account.
CREATE_DEMO = ("manage.py", "create_demo")
