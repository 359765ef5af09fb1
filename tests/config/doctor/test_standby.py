"""`manage.py doctor` finds faults of a standby, with the PostgreSQL of Patroni."""

import os
import signal

import pytest

from config.doctor.diagnosis import DoctorOptions, Verdict
from config.doctor.standby import check_standby
from tests.config.test_start import start
from tests.stack.patroni import Cluster, running_cluster
from tests.stack.stack import wait_for

# More than the lag that is no fault.
MUCH_WAL = "SELECT pg_logical_emit_message(true, 'lag', repeat('x', 70000000))"
DIAGNOSE = """
import django; django.setup()
from config.doctor.diagnosis import DoctorOptions
from config.doctor.standby import check_lag, check_standby
diagnosis = CHECK(DoctorOptions())
print(f"{diagnosis.verdict}: {diagnosis.message}")
"""


@pytest.fixture(scope="module")
def cluster():
    with running_cluster() as cluster:
        cluster.run_as_superuser("GRANT pg_read_all_stats TO postrider")
        yield cluster


def diagnose(cluster: Cluster, check: str = "check_standby") -> str:
    code = DIAGNOSE.replace("CHECK(", f"{check}(")
    run = start("-c", code, DATABASE_URL=cluster.url, DJANGO_SETTINGS_MODULE="config.settings")
    return run.stdout.strip() or run.stderr


@pytest.mark.django_db
def test_without_a_standby_nothing_is_reported():
    assert check_standby(DoctorOptions()).verdict == Verdict.SKIPPED


@pytest.mark.full
def test_a_synchronous_standby_is_sound(cluster):
    assert diagnose(cluster) == "ok: A synchronous standby is connected."
    assert diagnose(cluster, "check_lag") == "ok: The standby of PostgreSQL has yet to replay 0 MiB."


@pytest.mark.full
def test_a_role_without_the_right_is_named(cluster):
    cluster.run_as_superuser("REVOKE pg_read_all_stats FROM postrider")
    assert diagnose(cluster).startswith("skipped: Not checked: run GRANT pg_read_all_stats")
    cluster.run_as_superuser("GRANT pg_read_all_stats TO postrider")


@pytest.mark.full
def test_transactions_that_do_not_wait_are_a_fault(cluster):
    cluster.run_as_superuser("ALTER ROLE postrider SET synchronous_commit = local")
    assert diagnose(cluster).startswith("failed: synchronous_commit is local: transactions do not wait")
    cluster.run_as_superuser("ALTER ROLE postrider RESET synchronous_commit")


@pytest.mark.full
def test_a_standby_that_does_not_replay_is_reported(cluster):
    # Patroni would resume a replay that is only paused.
    ((process,),) = cluster.standby().run("SELECT pid FROM pg_stat_activity WHERE backend_type = 'startup'")
    os.kill(process, signal.SIGSTOP)
    cluster.run_as_superuser(MUCH_WAL)
    assert "warning: The standby of PostgreSQL has yet to replay 6" in diagnose(cluster, "check_lag")
    os.kill(process, signal.SIGCONT)
    wait_for(lambda: diagnose(cluster, "check_lag").startswith("ok"), seconds=60, what="the standby has replayed")


@pytest.mark.full
def test_an_asynchronous_standby_is_reported(cluster):
    cluster.primary().configure_cluster(synchronous_mode=False)
    wait_for(lambda: "is asynchronous" in diagnose(cluster), seconds=60, what="the standby is asynchronous")
    cluster.primary().configure_cluster(synchronous_mode=True)
    cluster.wait_for_standby()


@pytest.mark.full
def test_a_lost_standby_is_reported(cluster):
    cluster.standby().lose_power()
    wait_for(lambda: "No standby" in diagnose(cluster), seconds=60, what="the standby is gone")
