"""The processes of the service: what runs, and how long each may take to end in good order."""

import signal
from dataclasses import dataclass

from embedded.processes.processes import Ladder


@dataclass(frozen=True)
class Program:
    """A process kept running. arguments: what follows `python`, in the repository."""

    name: str
    arguments: tuple[str, ...]
    stop_seconds: float

    @property
    def ladder(self) -> Ladder:
        """How it ends."""
        return ((signal.SIGTERM, self.stop_seconds), (signal.SIGKILL, 5))


PROGRAMS = (
    Program("web", ("-m", "gunicorn", "-c", "config/gunicorn.py", "config.wsgi"), 35),
    # Mail sessions get 60 s to finish.
    Program("worker", ("manage.py", "worker"), 65),
    # Celery's persistent scheduler keeps a file; nothing here needs what it would remember.
    Program("beat", ("-m", "celery", "-A", "config", "beat", "--scheduler", "celery.beat:Scheduler"), 10),
    Program("inbox", ("manage.py", "inbox"), 10),
)

# Run to their end, one after the other, before the processes above.
MIGRATE = ("manage.py", "migrate", "--noinput")
# Prints one JSON object; run when there is no demo account yet.
CREATE_DEMO = ("manage.py", "create_demo")
