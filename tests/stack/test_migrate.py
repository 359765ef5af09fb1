"""manage.py migrate beside a running service."""

import subprocess

import psycopg
import pytest

from tests.stack.stack import PYTHON, REPOSITORY

pytestmark = [pytest.mark.stack, pytest.mark.full]
REPEATED = "holds a lock that this migration needs. It is repeated."


def test_a_migration_that_gets_no_lock_is_repeated(stack):
    with psycopg.connect(stack.database) as connection:
        connection.execute("LOCK TABLE domains_domain IN ROW EXCLUSIVE MODE")
        command = [PYTHON, "manage.py", "migrate", "domains", "0003", "--discard-data"]
        with subprocess.Popen(
            command, cwd=REPOSITORY, env=stack.environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        ) as run:
            assert any(REPEATED in line for line in run.stderr)
            connection.commit()
            rest = run.stderr.read()
    assert run.returncode == 0, rest
    stack.manage("migrate")
