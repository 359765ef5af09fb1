"""Each process logs one line when it is ready."""

import json
import os
import subprocess
import sys

import pytest
from django.conf import settings

from tests.stack.stack import REPOSITORY, free_port

COMMANDS = {
    "web": ["-m", "gunicorn", "-c", "config/gunicorn.py", "--log-level", "error", "config.wsgi"],
    "worker": ["manage.py", "worker"],
    "beat": ["-m", "config.beat"],
}


@pytest.mark.full
@pytest.mark.parametrize("name", COMMANDS)
def test_one_line_reports_that_the_process_is_ready(name):
    environment = {**os.environ, "PORT": str(free_port()), "WEB_CONCURRENCY": "1", "WORKER_CONCURRENCY": "1"}
    environment |= {"REDIS_URL": settings.REDIS_URL}
    command = [sys.executable, *COMMANDS[name]]
    with subprocess.Popen(command, cwd=REPOSITORY, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            line = next(line for line in process.stderr if "is ready" in line)
        finally:
            process.terminate()
    assert json.loads(line) | {"message": f"{name} is ready", "level": "info"} == json.loads(line)
