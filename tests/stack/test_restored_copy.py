"""Copy of a production database with RECIPIENTS=captured in another stack: nothing leaves (docs/guides/staging.md)."""

import os
import subprocess
from datetime import UTC, datetime, timedelta
from json import load
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen

import psycopg
import pytest

from tests.sending_process import MailHost
from tests.stack.stack import Stack, database_url, drop_database, running_stack, wait_for

pytestmark = pytest.mark.stack

TARGET, OWNER = "target@customer.example", "owner@customer.example"
# A message that waits to be read, one whose forward was accepted, and a system email.
RECEIVED_AND_SYSTEM = f"""
from django.utils import timezone
from console.system_mail.models import SystemMailKind
from console.system_mail.services import queue_system_mail
from domains.models import Domain, ReceivingDomain
from receiving.models import ForwardTarget
from tests.receiving.builders import arrive, make_route, process_received
domain = Domain.objects.get(name="demo.example")
ReceivingDomain.objects.filter(domain=domain).update(status="active", proven_at=timezone.now())
ForwardTarget.objects.create(workspace=domain.workspace, address="{TARGET}", confirmed_at=timezone.now())
make_route(domain.workspace, domain="demo.example", forward_to=["{TARGET}"])
arrive(to="one@demo.example")
process_received()
arrive(to="two@demo.example")
queue_system_mail(to="{OWNER}", kind=SystemMailKind.RESET, subject="A new password", text="Open")
"""
WAITING = """
SELECT (SELECT count(*) FROM emails_pending), (SELECT count(*) FROM system_mail_systemmail WHERE state = 'waiting'),
       (SELECT count(*) FROM receiving_receivedemail WHERE processed_at IS NULL OR forward_due_at IS NOT NULL)
"""
EVERYTHING_IS_DUE = """
UPDATE emails_pending SET due_at = now() - interval '1 second';
UPDATE system_mail_systemmail SET due_at = now() - interval '1 second';
UPDATE receiving_message SET due_at = now() - interval '1 second';
UPDATE receiving_receivedemail SET forward_due_at = now() WHERE forward_due_at IS NOT NULL;
"""


class Deferring(MailHost):
    """The mail host of production, which refuses messages for a time."""

    async def handle_RCPT(self, *_: object) -> str:  # noqa: N802
        return "451 4.2.0 Try again later"


@pytest.fixture
def sink():
    """The mail host of the copy, to which everything would leave."""
    host = MailHost()
    host.start()
    # The controller connects once, to wait for the server.
    host.connections = 0
    yield host
    host.stop()


@pytest.fixture
def dump(tmp_path) -> Path:
    """Return a dump of a production database with schedules, retries, forwards and system email that wait."""
    host, logs = Deferring(), tmp_path / "production"
    host.start()
    logs.mkdir()
    relay = {"DELIVERY_TRANSPORT": "smtp", "SMTP_URL": f"smtp://127.0.0.1:{host.port}"}
    try:
        with running_stack(logs, **relay) as production:
            production.start("web", "worker")
            assert production.send(to=["retried@customer.example"], bcc=["hidden@customer.example"]).status == 202
            deferred = "SELECT count(*) FROM emails_recipient WHERE attempts > 0"
            wait_for(lambda: production.query(deferred) == [(2,)], seconds=120, what="the host defers two recipients")
            production.stop(["worker"])
            later = (datetime.now(UTC) + timedelta(days=30)).isoformat()
            assert production.send(to="scheduled@customer.example", scheduledFor=later).status == 202
            assert production.send(to="ready@customer.example").status == 202
            production.manage("shell", "-c", RECEIVED_AND_SYSTEM)
            assert production.query(WAITING) == [(5, 1, 1)]
            return _dump(production, tmp_path / "production.dump")
    finally:
        host.stop()


def _run(program: str, *arguments: object) -> None:
    path = Path(os.environ["POSTRIDER_TEST_PG_BIN"]) / program
    subprocess.run([path, *map(str, arguments)], check=True, capture_output=True, timeout=300)


def _dump(stack: Stack, path: Path) -> Path:
    _run("pg_dump", "--format=custom", f"--file={path}", stack.database)
    return path


def restore(stack: Stack, dump: Path) -> None:
    """Replace the database of a stack by the one of a dump."""
    name = urlsplit(stack.database).path[1:]
    drop_database(stack.database, name)
    with psycopg.connect(database_url(stack.database, "postgres"), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    _run("pg_restore", "--exit-on-error", "--no-owner", f"--dbname={stack.database}", dump)


def test_nothing_leaves_a_copy_that_captures(dump, sink, tmp_path):
    variables = {
        "RECIPIENTS": "captured",
        "DELIVERY_TRANSPORT": "smtp",
        "SMTP_URL": f"smtp://127.0.0.1:{sink.port}",
        "CANARY_MINUTES": "1",
        "CANARY_ADDRESS": "canary@in.demo.example",
    }
    with running_stack(tmp_path, **variables) as copy:
        restore(copy, dump)
        copy.execute(EVERYTHING_IS_DUE)
        copy.start("web", "worker", "beat")
        wait_for(lambda: copy.query(WAITING) == [(0, 0, 0)], seconds=180, what="everything that waited is captured")
        assert copy.call("GET", "/me").body["recipients"] == "captured"
        assert copy.send(to="new@customer.example").status == 202
        wait_for(lambda: copy.query(WAITING) == [(0, 0, 0)], seconds=60, what="a new email is captured")
        with urlopen(f"{copy.url}/readyz", timeout=30) as response:
            assert any("RECIPIENTS lets no email leave" in warning for warning in load(response)["warnings"])
        captured = copy.query("SELECT recipient FROM inbox_caughtmail WHERE is_captured ORDER BY 1")
        statuses = copy.query("SELECT DISTINCT status, is_diverted FROM emails_email")
    names = ("hidden", "new", "owner", "ready", "retried", "scheduled", "target", "target")
    assert [address for (address,) in captured] == [f"{name}@customer.example" for name in names]
    assert statuses == [("delivered", True)]
    assert (sink.connections, sink.recipients) == (0, [])
