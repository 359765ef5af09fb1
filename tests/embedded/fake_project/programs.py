"""Process table of the fake project: a web server that forks, and a worker with a child."""

import signal
from dataclasses import dataclass

from embedded.processes.processes import StopSequence


@dataclass(frozen=True)
class Program:
    """A process of the fake project."""

    name: str
    arguments: tuple[str, ...]
    stop_sequence: StopSequence = ((signal.SIGTERM, 10), (signal.SIGKILL, 5))


PROGRAMS = (
    Program("web", ("-m", "gunicorn", "-c", "config/gunicorn.py", "config.wsgi")),
    Program("worker", ("manage.py", "worker")),
)
MIGRATE = ("manage.py", "migrate")
COLLECT_STATIC = ("manage.py", "collectstatic")
CREATE_DEMO = ("manage.py", "create_demo")
