"""Several hosts in DATABASE_URL, and a server that is no longer the primary."""

import os
from urllib.parse import urlsplit

import pytest
from django.db import OperationalError, connection

from config.postgres.database_url import database_url_errors, parse_database_url
from core.workspaces.models import User
from tests.config.test_start import start
from tests.conftest import code_of, mail
from tests.rows import each

READ_ONLY = "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY"
READ = """
import django; django.setup()
from django.db import connection
with connection.cursor() as cursor:
    cursor.execute("SELECT inet_server_port()")
    print(*cursor.fetchone())
"""


@each(
    ("hosts", "names", "ports"),
    [
        ("one:5433,two", "one,two", "5433,5432"),
        ("[::1]:5433,10.0.0.2:6432,three", "::1,10.0.0.2,three", "5433,6432,5432"),
    ],
)
def test_the_hosts_are_those_of_libpq(hosts, names, ports):
    url = f"postgres://u:p%2C@{hosts}/mail?target_session_attrs=read-write"
    database = parse_database_url(url, options={"connect_timeout": 5})
    assert (database["HOST"], database["PORT"]) == (names, ports)
    assert (database["USER"], database["PASSWORD"], database["NAME"]) == ("u", "p,", "mail")
    assert database["OPTIONS"] == {"target_session_attrs": "read-write", "connect_timeout": 5}
    assert list(database_url_errors(url)) == []


@each("host", ["one:5433", "one", "", "[::1]:5433"])
def test_a_single_host_needs_no_attribute(host):
    assert list(database_url_errors(f"postgres://u:p@{host}/mail")) == []


def test_a_host_that_is_away_is_skipped():
    url = urlsplit(os.environ["DATABASE_URL"])
    hosts = f"{url.username}:{url.password}@127.0.0.1:1,127.0.0.1:{url.port}"
    several = url._replace(netloc=hosts, query="target_session_attrs=read-write").geturl()
    run = start("-c", READ, DATABASE_URL=several, DJANGO_SETTINGS_MODULE="config.settings")
    assert run.stdout == f"{url.port}\n", run.stderr


def use_a_server_that_only_reads() -> None:
    with connection.cursor() as cursor:
        cursor.execute(READ_ONLY)


@pytest.mark.django_db(transaction=True)
def test_a_server_that_only_reads_is_left_at_the_next_use():
    use_a_server_that_only_reads()
    with pytest.raises(OperationalError, match="read-only transaction"):
        User.objects.create(email="ada@example.com")
    connection.close_if_unusable_or_obsolete()
    User.objects.create(email="ada@example.com")


@pytest.mark.django_db(transaction=True)
def test_a_request_to_a_server_that_only_reads_is_repeated_by_the_client(api):
    use_a_server_that_only_reads()
    assert code_of(api.post("/emails/send", mail(idempotencyKey="k"))) == (503, "service_unavailable")
    connection.close_if_unusable_or_obsolete()
    assert api.post("/emails/send", mail(idempotencyKey="k")).status_code == 202
