"""Checks of the installation itself: settings, database, Redis, clock, workers, disk and backups."""

import shutil
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import redis
from django.conf import settings
from django.db import Error, connection
from django.db.migrations.executor import MigrationExecutor

from config.checks import recipient_warnings, setting_errors
from config.doctor.diagnosis import Diagnosis, DoctorOptions, failed, ok, skip, warning
from config.health import check_sending
from config.heartbeats import live_workers
from config.postgres.database_url import AUTHORITIES, unverified_host
from console.dashboard.static_files import HashedFilesStorage
from core.lib.redis_client import connect_redis
from core.workspaces.models import Workspace

MIN_DATABASE_VERSION = 15
MAX_CLOCK_SECONDS = 30.0
GIB = 1024**3
EXTENSION = "pg_trgm"


def check_settings(_: DoctorOptions) -> Diagnosis:
    errors = list(setting_errors())
    if errors:
        return failed(
            " ".join(errors), remedy="Correct these settings and restart all processes. See docs/settings.md."
        )
    return ok("All settings are valid.")


def check_database(_: DoctorOptions) -> Diagnosis:
    try:
        _query("SELECT 1")
    except Error as error:
        return failed(
            f"PostgreSQL does not respond: {_first_line(error)}",
            remedy="Start PostgreSQL, and compare host, port, user, password and database in DATABASE_URL.",
        )
    return ok("PostgreSQL responds.")


def check_database_tls(_: DoctorOptions) -> Diagnosis:
    host = unverified_host(settings.DATABASES["default"])
    if host and not settings.EMBEDDED:
        return warning(
            f"The certificate of the PostgreSQL server at {host} is not verified: who controls the network between "
            "can read and change all data.",
            remedy=f"Add ?sslmode=verify-full&sslrootcert={AUTHORITIES} to DATABASE_URL, or the file of your own "
            "authority. In a network that only your servers can reach, this warning can be ignored.",
        )
    return ok("Connections to PostgreSQL are local or verified.")


def check_database_version(_: DoctorOptions) -> Diagnosis:
    major = int(_query("SELECT current_setting('server_version_num')")) // 10_000
    if major < MIN_DATABASE_VERSION:
        return failed(
            f"PostgreSQL is version {major}; Postrider needs {MIN_DATABASE_VERSION} or newer.",
            remedy=f"Upgrade the cluster to PostgreSQL {MIN_DATABASE_VERSION} or newer (pg_upgradecluster on Debian).",
        )
    return ok(f"PostgreSQL is version {major}.")


def check_extension(_: DoctorOptions) -> Diagnosis:
    if _query("SELECT count(*) FROM pg_extension WHERE extname = %s", EXTENSION):
        return ok(f"The extension {EXTENSION} is installed.")
    return failed(
        f"The database lacks the extension {EXTENSION}, which the search needs.",
        remedy=f"Run CREATE EXTENSION {EXTENSION} in the database as a superuser, then manage.py migrate.",
    )


def check_synchronous_commit(_: DoctorOptions) -> Diagnosis:
    if _query("SELECT current_setting('synchronous_commit')") == "off":
        return failed(
            "synchronous_commit is off: a crash of PostgreSQL loses emails that were accepted.",
            remedy="Set synchronous_commit = on in postgresql.conf, and reset it for the role and the database.",
        )
    return ok("synchronous_commit is on.")


def check_migrations(_: DoctorOptions) -> Diagnosis:
    executor = MigrationExecutor(connection)
    missing = executor.migration_plan(executor.loader.graph.leaf_nodes())
    if missing:
        return failed(f"{len(missing)} database migrations are not applied.", remedy="Run manage.py migrate.")
    return ok("All database migrations are applied.")


def check_plans(_: DoctorOptions) -> Diagnosis:
    unknown = Workspace.objects.exclude(plan__in=settings.PLANS)
    if plan := unknown.values_list("plan", flat=True).first():
        return failed(
            f"{unknown.count()} workspaces have plans that do not exist, such as {plan!r}. They have the limits of "
            f"{settings.DEFAULT_PLAN}.",
            remedy="Add the plan to PLANS_FILE, or change those of the workspaces (manage.py change_plan).",
        )
    return ok("The plans of all workspaces exist.")


def check_redis(_: DoctorOptions) -> Diagnosis:
    try:
        with connect_redis(settings.REDIS_URL, socket_timeout=5, socket_connect_timeout=5) as client:
            client.ping()
    except (redis.RedisError, OSError, ValueError) as error:
        return failed(
            f"Redis does not respond: {_first_line(error)}",
            remedy="Start Redis or Valkey, and compare host, port and password in REDIS_URL. Email is sent meanwhile, "
            "up to two seconds later; rate limits do not apply.",
        )
    return ok("Redis responds.")


def check_clock(_: DoctorOptions) -> Diagnosis:
    before = datetime.now(UTC)
    of_database = _query("SELECT clock_timestamp()")
    after = datetime.now(UTC)
    difference = max((before - of_database).total_seconds(), (of_database - after).total_seconds(), 0.0)
    if difference > MAX_CLOCK_SECONDS:
        return failed(
            f"The clocks of this machine and of the database differ by {difference:.0f} seconds.",
            remedy="Synchronize both clocks by NTP (systemd-timesyncd or chrony); sign-ins, rate limits and the "
            "signatures of received email use them.",
        )
    return ok("The clocks of this machine and of the database agree.")


def check_workers(_: DoctorOptions) -> Diagnosis:
    count = len(live_workers())
    if not count:
        return failed(
            "No worker process has sent a heartbeat in the last 35 seconds.",
            remedy="Start manage.py worker with the same DATABASE_URL and REDIS_URL, and read its log.",
        )
    return ok(f"{count} worker process{'es' if count > 1 else ''} running.")


def check_transport(_: DoctorOptions) -> Diagnosis:
    troubles = sorted({worker.trouble for worker in live_workers() if worker.trouble})
    if troubles:
        return failed(
            f"Workers cannot send: {' '.join(troubles)}",
            remedy="Correct SMTP_URL or the provider's settings and restart the workers. The queue is kept.",
        )
    return ok("No worker reports a rejected login.")


def check_recipients(_: DoctorOptions) -> Diagnosis:
    """Diagnose whether recipients get their emails: a copy of an installation must not send them."""
    if messages := list(recipient_warnings()):
        return warning(" ".join(messages), remedy="Set RECIPIENTS=all and restart, if this is no staging system.")
    return ok("Recipients get their emails.")


def check_queue(_: DoctorOptions) -> Diagnosis:
    complaint = check_sending()
    if complaint:
        remedy = "Start workers, or run manage.py release if sending is paused; after a restore, see docs/backup.md."
        return failed(complaint, remedy=remedy)
    return ok("No recipient is overdue.")


def check_static_files(_: DoctorOptions) -> Diagnosis:
    if HashedFilesStorage().is_collected:
        return ok("The static files of this version are collected.")
    return warning(
        f"The static files of this version are not in {settings.STATIC_ROOT}: pages load more slowly.",
        remedy="Run manage.py collectstatic as the owner of the directory, then restart web.",
    )


def check_disk(options: DoctorOptions) -> Diagnosis:
    free = {path: shutil.disk_usage(path).free / GIB for path in (settings.BASE_DIR, Path(tempfile.gettempdir()))}
    path, least = min(free.items(), key=lambda entry: entry[1])
    if least < options.min_free_gib:
        return failed(
            f"Only {least:.1f} GiB are free at {path}.",
            remedy=f"Free disk space, or accept less than {options.min_free_gib:g} GiB with --min-free-gib.",
        )
    return ok(f"{least:.1f} GiB are free on this machine. The disk of PostgreSQL is not checked.")


def check_backups(options: DoctorOptions) -> Diagnosis:
    if options.backups is None:
        return skip("Not checked: pass --backups with the path of the backups.")
    remedy = "Run the backup and read its log; see docs/backup.md."
    # A file has no others below it. A dump that deploy/backup has not finished is none.
    found = (path for path in (options.backups, *options.backups.rglob("*")) if path.suffix != ".unfinished")
    files = [path for path in found if path.is_file() and path.stat().st_size]
    if not files:
        return failed(f"There is no backup at {options.backups}.", remedy=remedy)
    hours = (time.time() - max(path.stat().st_mtime for path in files)) / 3600
    if hours > options.backup_max_hours:
        return failed(f"The last backup at {options.backups} is {hours:.0f} hours old.", remedy=remedy)
    return ok(f"The last backup is {max(hours, 0):.0f} hours old.")


def _query(sql: str, *parameters: str) -> Any:
    """Return the first column of the first row."""
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        row = cursor.fetchone()
    assert row
    return row[0]


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
