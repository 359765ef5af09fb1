"""manage.py migrate beside a running service."""

import subprocess
import threading

import psycopg
import pytest

from tests.stack.stack import PYTHON, REPOSITORY

pytestmark = [pytest.mark.stack, pytest.mark.full]
# More than the lock_timeout of the settings and the start of the command.
LOCKED_SECONDS = 20


def test_a_migration_that_gets_no_lock_is_repeated(stack):
    with psycopg.connect(stack.database) as connection:
        connection.execute("LOCK TABLE domains_domain IN ROW EXCLUSIVE MODE")
        threading.Timer(LOCKED_SECONDS, connection.commit).start()
        run = migrate(stack, "domains", "0003", "--discard-data")
        assert run.returncode == 0, run.stderr
        assert "holds a lock that this migration needs. It is repeated." in run.stderr
    assert migrate(stack).returncode == 0


def migrate(stack, *target: str) -> "subprocess.CompletedProcess[str]":
    command = [PYTHON, "manage.py", "migrate", *target]
    return subprocess.run(
        command, cwd=REPOSITORY, env=stack.environment, capture_output=True, text=True, check=False, timeout=120
    )
