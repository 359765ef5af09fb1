"""Processes of the service, with the time that each may take to stop."""

import signal
from dataclasses import dataclass

from embedded.processes.processes import StopSequence


@dataclass(frozen=True)
class Program:
    """A process of the service. arguments: for `python`, in the repository."""

    name: str
    arguments: tuple[str, ...]
    stop_seconds: float

    @property
    def stop_sequence(self) -> StopSequence:
        """SIGTERM, then SIGKILL after `stop_seconds`."""
        return ((signal.SIGTERM, self.stop_seconds), (signal.SIGKILL, 5))


PROGRAMS = (
    Program("web", ("-m", "gunicorn", "-c", "config/gunicorn.py", "config.wsgi"), 35),
    # SMTP sessions get 60 s to finish.
    Program("worker", ("manage.py", "worker"), 65),
    # Celery's persistent scheduler keeps a file with state that no schedule here needs.
    Program("beat", ("-m", "celery", "-A", "config", "beat", "--scheduler", "celery.beat:Scheduler"), 10),
    Program("inbox", ("manage.py", "inbox"), 10),
)

# Commands that run to completion before these processes start.
MIGRATE = ("manage.py", "migrate", "--noinput")
# Prints one JSON object; runs only when there is no demo account.
CREATE_DEMO = ("manage.py", "create_demo")
