"""The process table of the stand-in: a web server that forks, and a worker with a child."""

import signal
from dataclasses import dataclass

from embedded.processes.processes import Ladder


@dataclass(frozen=True)
class Program:
    """A process kept running."""

    name: str
    arguments: tuple[str, ...]
    ladder: Ladder = ((signal.SIGTERM, 10), (signal.SIGKILL, 5))


PROGRAMS = (
    Program("web", ("-m", "gunicorn", "-c", "config/gunicorn.py", "config.wsgi")),
    Program("worker", ("manage.py", "worker")),
)
MIGRATE = ("manage.py", "migrate")
CREATE_DEMO = ("manage.py", "create_demo")
