"""The whole service behind PgBouncer in transaction mode, with fewer connections to PostgreSQL than threads."""

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import psycopg
import pytest

from config.celery import SCHEDULE
from tests.stack.pgbouncer import PgBouncer, role_settings, running_pgbouncer
from tests.stack.scenario import Scenario, Tenant, running_scenario
from tests.stack.stack import wait_for

pytestmark = pytest.mark.stack

# Connections of PgBouncer to PostgreSQL. Each process of web and each worker has four threads and timers.
CONNECTIONS = 5
SESSION_LOCKS = """
SELECT l.pid FROM pg_locks l JOIN pg_stat_activity a USING (pid)
 WHERE l.locktype = 'advisory' AND a.datname = current_database()
"""
PROCESSES = ("web", "worker", "worker-2", "beat", "inbound", "submission")


@dataclass
class Pooled:
    """A scenario whose processes connect to PgBouncer. server: the URL of their database without it."""

    scenario: Scenario
    pooler: PgBouncer
    server: str

    def has_no_lock(self) -> bool:
        with psycopg.connect(self.server, autocommit=True) as connection:
            return connection.execute(SESSION_LOCKS).fetchall() == []


@pytest.fixture(scope="module")
def pooled(tmp_path_factory):
    server = os.environ["DATABASE_URL"]
    folder = tmp_path_factory.mktemp("pooled")
    with (
        running_pgbouncer(server, pool_size=CONNECTIONS) as pooler,
        running_scenario(folder, pooler=pooler.url) as scenario,
    ):
        name = scenario.stack.database.rpartition("/")[2]
        direct = f"{server.rpartition('/')[0]}/{name}"
        with psycopg.connect(direct, autocommit=True) as connection:
            for assignment in role_settings():
                # The role is that of other tests, too.
                connection.execute(f"ALTER DATABASE {name} {assignment}")
        pooler.run("RECONNECT")
        scenario.stack.start("worker-2", "beat")
        yield Pooled(scenario, pooler, direct)


def test_all_ways_in_and_out_work(pooled):
    scenario = pooled.scenario

    def use(tenant: Tenant) -> None:
        for _ in range(5):
            scenario.send(tenant, scenario.address())
            scenario.submit(tenant, scenario.address())
            scenario.receive(tenant)
        scenario.batch(tenant, *(scenario.address() for _ in range(50)), template=tenant.long_template)
        scenario.send(tenant, scenario.address(), seconds=1)
        scenario.cancel(scenario.send(tenant, scenario.address(), seconds=3600))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(use, scenario.tenants * 4))
    scenario.wait_until_idle()
    for message in scenario.ledger.messages[:10]:
        scenario.report_bounce(message)
    scenario.wait_until_idle()
    assert len(scenario.ledger.messages) == sum(not email.cancelled_at for email in scenario.ledger.accepted)
    assert scenario.find_violations() == []


def test_the_connections_are_few_and_their_statements_prepared(pooled):
    servers = pooled.pooler.run("SHOW SERVERS")
    own = [row for row in servers if row["database"] == pooled.server.rpartition("/")[2]]
    assert 0 < len(own) <= CONNECTIONS
    assert max(row["prepared_statements"] for row in own) > 5


def test_the_timeouts_are_those_of_the_role(pooled):
    names = [assignment.split()[1] for assignment in role_settings()]
    query = "SELECT name, current_setting(name) FROM unnest(%s::text[]) name"
    assert dict(pooled.scenario.stack.query(query, names)) == {
        "lock_timeout": "5s",
        "statement_timeout": "15s",
        "idle_in_transaction_session_timeout": "30s",
        "plan_cache_mode": "force_generic_plan",
    }


def test_periodic_tasks_leave_no_lock_in_the_connections_of_others(pooled):
    scenario = pooled.scenario
    for _ in range(3):
        scenario.enqueue_tasks(*(task for task, _ in SCHEDULE.values()))
    scenario.send(scenario.tenants[0], scenario.address())
    scenario.wait_until_idle()
    wait_for(pooled.has_no_lock, seconds=60, what="the locks of all tasks are released")


def test_no_process_has_logged_an_error(pooled):
    lines = [line for name in PROCESSES for line in pooled.scenario.log(name).splitlines()]
    # A busy machine may keep a request waiting for a connection for too long, which is 503.
    waited = ["query_wait_timeout", "Service Unavailable"]
    if "query_wait_timeout" in pooled.pooler.log.read_text(errors="replace"):
        # PgBouncer closes the connection then, which the next statement may find.
        waited.append("the connection is closed")
    assert [line for line in lines if '"level": "error"' in line and not any(text in line for text in waited)] == []
