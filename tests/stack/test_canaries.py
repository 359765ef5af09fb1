"""Secrets that went through every flow are found nowhere: no log, no row, no task in Redis (threat T28)."""

import pytest
from redis import Redis

from tests.stack.scenario import running_scene
from tests.stack.stack import wait_for

pytestmark = pytest.mark.stack

TABLES = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND table_type = 'BASE TABLE'"


def rows_with(scene, canary):
    for (table,) in scene.stack.query(TABLES):
        if scene.stack.query(f'SELECT 1 FROM "{table}" t WHERE t::text LIKE %s LIMIT 1', f"%{canary}%"):
            yield table


def values_in(redis_url):
    with Redis.from_url(redis_url) as client:
        for key in client.scan_iter():
            # DUMP has the bytes of any type.
            yield key + (client.dump(key) or b"")


def test_no_secret_is_written_down_anywhere(tmp_path):
    with running_scene(tmp_path, SECRET_KEY="canary" + "0123456789abcdef" * 4) as scene:
        tenant = scene.tenants[1]
        canaries = [tenant.key.rpartition("_")[2], tenant.secret.removeprefix("whsec_"), "long enough words"]
        canaries.append("canary0123456789abcdef")
        scene.send(tenant, scene.address())
        scene.send(tenant, scene.address("simulator.test", "clicked"))
        # Errors are what leaks: a wrong key beside a right one, a broken body, a database that goes away.
        scene._ask(tenant, "POST", "/emails/send", {"from": tenant.key}, "")
        wait_for(lambda: scene.ledger.copies and len(scene.ledger.posts) > 2, seconds=120, what="mail and events")
        scene.stack.drop_connections()
        scene.send(tenant, scene.address())
        scene.settle()
        redis = list(values_in(scene.stack.environment["REDIS_URL"]))
        logs = {path.name: path.read_text(errors="replace") for path in tmp_path.glob("*.log")}
        assert logs["web.log"]
        for canary in canaries:
            assert list(rows_with(scene, canary)) == []
            assert [name for name, text in logs.items() if canary in text] == []
            assert [value for value in redis if canary.encode() in value] == []
        assert list(rows_with(scene, tenant.mark)), "the search finds what is there"
