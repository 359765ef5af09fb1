"""Secrets do not leak into logs, rows or Redis (threat T28)."""

import pytest
from redis import Redis

from tests.stack.scenario import running_scenario
from tests.stack.stack import wait_for

pytestmark = pytest.mark.stack

TABLES = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'"


def tables_with(scenario, *texts):
    """Return the tables that have one of the texts, with a row."""
    patterns = [f"%{text}%" for text in texts]
    query = 'SELECT t::text FROM "{}" t WHERE t::text LIKE ANY(%s) LIMIT 1'
    found = {table: scenario.stack.query(query.format(table), patterns) for (table,) in scenario.stack.query(TABLES)}
    return {table: rows for table, rows in found.items() if rows}


def values_in(redis_url):
    with Redis.from_url(redis_url) as client:
        for key in client.scan_iter():
            # DUMP returns the bytes of any type.
            yield key + (client.dump(key) or b"")


def test_no_secret_is_stored_or_logged(tmp_path):
    with running_scenario(tmp_path, SECRET_KEY="canary" + "0123456789abcdef" * 4) as scenario:
        tenant = scenario.tenants[1]
        canaries = [tenant.key.rpartition("_")[2], tenant.secret.removeprefix("whsec_"), "long enough words"]
        canaries.append("canary0123456789abcdef")
        scenario.send(tenant, scenario.address())
        scenario.send(tenant, scenario.address("simulator.test", "clicked"))
        # Errors are the likely leaks: a key in the body, an invalid body, a lost database connection.
        scenario._ask(tenant, "POST", "/emails/send", {"from": tenant.key}, "")
        wait_for(
            lambda: scenario.ledger.messages and len(scenario.ledger.requests) > 2,
            seconds=120,
            what="messages and events",
        )
        scenario.stack.drop_connections()
        scenario.send(tenant, scenario.address())
        scenario.wait_until_idle()
        redis = list(values_in(scenario.stack.environment["REDIS_URL"]))
        logs = {path.name: path.read_text(errors="replace") for path in tmp_path.glob("*.log")}
        assert logs["web.log"]
        assert tables_with(scenario, *canaries) == {}
        assert tables_with(scenario, tenant.marker), "the search finds existing text"
        for canary in canaries:
            assert [name for name, text in logs.items() if canary in text] == []
            assert [value for value in redis if canary.encode() in value] == []
