"""manage.py worker: WORKER_CONCURRENCY Celery processes, started and stopped together."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from types import FrameType
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from config.worker import PARENT

# The threads of a process share its sessions and its queue processors; two threads stay free for scheduled tasks.
CELERY = [sys.executable, "-m", "celery", "--app", "config", "--quiet", "worker"]
OPTIONS = ["--pool", "threads", "--concurrency", "4", "--without-gossip", "--without-mingle", "--loglevel", "WARNING"]
RESTART_SECONDS = 1.0


class Command(BaseCommand):
    help = "Run WORKER_CONCURRENCY worker processes, by default one per core."

    def handle(self, *args: Any, **options: Any) -> None:
        count = settings.WORKER_CONCURRENCY or multiprocessing.cpu_count()
        self.stopping = False
        self.processes = [self._spawn(number) for number in range(count)]
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)
        while not self.stopping:
            self._replace_dead()
            time.sleep(RESTART_SECONDS)
        for process in self.processes:
            process.wait()

    def _spawn(self, number: int) -> "subprocess.Popen[bytes]":
        environment = {**os.environ, PARENT: str(os.getpid())}
        return subprocess.Popen([*CELERY, *OPTIONS, "--hostname", f"worker{number}@%h"], env=environment)

    def _replace_dead(self) -> None:
        for number, process in enumerate(self.processes):
            if process.poll() is not None and not self.stopping:
                self.processes[number] = self._spawn(number)

    def _stop(self, number: int, frame: FrameType | None) -> None:
        self.stopping = True
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
