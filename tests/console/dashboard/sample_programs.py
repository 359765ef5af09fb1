"""The programs that run the code samples of the dashboard."""

import os
import subprocess
import sys

from django.db import connection

from tests.stack.stack import wait_for
from tests.standards.tools import program

# Runs the two halves of the Django sample: the settings, then the code.
RUN_DJANGO = """
import sys
from django.conf import settings

before, after = sys.argv[1].split("# anywhere")
values = {}
exec(before, values)
settings.configure(**{name: value for name, value in values.items() if name.isupper()})
exec(after)
"""


def run_sample(language: str, code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a sample with more environment variables."""
    environment = {**os.environ, **variables}
    return subprocess.run(
        command(language, code), check=False, env=environment, capture_output=True, text=True, timeout=120
    )


def wait_for_the_end_of_requests() -> None:
    """Wait until no other session is in a transaction, since the database is emptied after the test."""
    wait_for(lambda: not busy_sessions(), seconds=60, what="no other session is in a transaction")


def command(language: str, code: str) -> list[str]:
    """Return the command that runs a sample: curl and SMTP samples are shell commands."""
    match language:
        case "JavaScript":
            return [program("node", package="nodejs"), "--input-type=module", "-e", code]
        case "Python":
            return [sys.executable, "-c", code]
        case "Django":
            return [sys.executable, "-c", RUN_DJANGO, code]
    return [program("bash", package="bash"), "-euc", code]


def busy_sessions() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid() AND state <> 'idle'"
        )
        return int(cursor.fetchone()[0])
