"""`bin/run`: run the whole service on this machine until Ctrl-C."""

import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NoReturn

from tools.embedded.commands import run_command, run_with_progress
from tools.embedded.data_dir_lock import acquire_lock, is_lock_free, read_runtime, refuse_if_running
from tools.embedded.demo import DemoAccount, prepare_demo
from tools.embedded.environment import enter_environment
from tools.embedded.errors import CannotStart
from tools.embedded.locations import REPOSITORY, DataDirectory
from tools.embedded.logs import open_log, read_log_tail
from tools.embedded.processes.processes import StopSequence, start_in_session
from tools.embedded.processes.signals import StopRequested, raise_on_signals
from tools.embedded.processes.supervisor import SERVICE_STAGE, SupervisedProcess, Supervisor
from tools.embedded.servers.server_directories import find_orphaned_directories
from tools.embedded.servers.startup import start_servers
from tools.embedded.settings import LauncherSettings, read_settings, refuse_busy_port
from tools.embedded.terminal import print_output, print_status

# SMTP sessions get 60 s to finish.
STOP_SECONDS = 65
STOP_SEQUENCE: StopSequence = ((signal.SIGTERM, STOP_SECONDS), (signal.SIGKILL, 5))
READY_SECONDS = 90
# A process that exits this often before the service is ready will not start.
MAX_START_FAILURES = 2
# The beginning of the complaint of /readyz while sending is paused (config.health).
PAUSED = "Sending has been paused"

USAGE = """Usage: [NAME=value …] bin/run

Run Postrider with PostgreSQL and Redis on this machine until Ctrl-C. The first start installs the Python packages into
.venv and creates a demo account. Settings are environment variables:

  PORT          port of the API, the dashboard and the docs (8000)
  DATA_DIR      directory of the database, the logs, the generated secrets and demo.json (var)
  PUBLIC_URL    URL in links (http://127.0.0.1:PORT)
  DATABASE_URL  a PostgreSQL that is already running; otherwise one is started
  REDIS_URL     a Redis that is already running; otherwise one is started

All others are in .env.example and docs/settings.md. A secret may also be given as NAME_FILE, the path of a file with
the value. bin/manage runs management commands on the same data, bin/test the tests.
"""

WELCOME = """
Postrider is running at {base}

  Dashboard  {base}/dashboard/   {email}   {password}
  Inbox      {inbox}   (emails sent from this service)
  Staff      {base}/admin/   {staff}
  Docs       {base}/docs/
  API key    {key}

Send an email:

{curl}

Or send it over SMTP, with the API key as the password ({base}/docs/smtp):

{smtp}
{received}
Logins: {demo_json}. Logs: {logs}.
Press Ctrl-C to stop. Data is kept between runs.
"""

RECEIVED = """
Receive an email at {address}, and see it at {base}/dashboard/ under Received ({base}/docs/guides/receiving):

{curl}
"""


def run(arguments: list[str]) -> int:
    """Run the service until a signal stops it; return 0."""
    if arguments in (["--help"], ["-h"]):
        print_output(USAGE)
        return 0
    if arguments:
        raise CannotStart("bin/run takes no arguments. Set environment variables instead: see bin/run --help.")
    settings = read_settings(os.environ)
    settings.data.create()
    refuse_if_running(settings.data)
    if is_lock_free(settings.data):
        _refuse_busy_port(settings)  # fail before a long installation
    enter_environment("requirements-embedded.txt")
    raise_on_signals()
    lock = acquire_lock(settings.data)
    _refuse_busy_port(settings)
    supervisor = Supervisor(lock=lock, remove_at_end=settings.data.runtime)
    try:
        _serve(settings, supervisor)
    except StopRequested:
        print_status("Stopping … (press Ctrl-C again to force)")
        return 0
    finally:
        settings.data.runtime.unlink(missing_ok=True)
        supervisor.stop()


def _refuse_busy_port(settings: LauncherSettings) -> None:
    killed = read_runtime(settings.data)  # a launcher that stops normally removes it
    may_be_killed_web = killed is not None and killed.environment.get("PORT") == str(settings.port)
    refuse_busy_port(settings.port, timeout_seconds=STOP_SECONDS if may_be_killed_web else 0)


def _serve(settings: LauncherSettings, supervisor: Supervisor) -> NoReturn:
    """Start all processes, print the welcome message, and keep them running until an exception."""
    data = settings.data
    print_status("Starting PostgreSQL and Redis …")
    for orphaned in find_orphaned_directories(data.path):
        print_status(f"Data from a removed DATA_DIR is still in {orphaned}. Delete it if you do not need it.")
    environment = start_servers(settings, os.environ, supervisor, kind="run")
    print_status("Applying database migrations …")
    migrate = ("migrate", "--noinput", "--verbosity", "0", "--progress")
    run_with_progress(*migrate, environment=environment, failure="Database migrations failed.")
    print_status("Collecting static files, and creating the demo account at the first start …")
    failure = "The static files could not be collected:"
    run_command("collectstatic", "--noinput", "--verbosity", "0", environment=environment, failure=failure)
    shutil.rmtree(data.metrics, ignore_errors=True)
    data.metrics.mkdir()
    demo = prepare_demo(data, settings.public_url, environment)
    print_status("Starting the service …")
    _start_service(environment, data.logs / "service.log", supervisor)
    _wait_until_ready(settings.port, supervisor, logs=data.logs)
    print_output(_welcome(demo, data, environment))
    while True:
        supervisor.check()
        time.sleep(1)


def _start_service(environment: Mapping[str, str], log: Path, supervisor: Supervisor) -> None:
    def launch() -> "subprocess.Popen[bytes]":
        with open_log(log) as output:
            command = [sys.executable, "manage.py", "serve"]
            return start_in_session(command, environment=environment, directory=REPOSITORY, output=output)

    supervisor.start(SupervisedProcess(launch, STOP_SEQUENCE, SERVICE_STAGE, log))


def _wait_until_ready(port: int, supervisor: Supervisor, *, logs: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while not _is_ready(port):
        supervisor.check()
        for process in supervisor.processes:
            if process.failures >= MAX_START_FAILURES:
                lines = read_log_tail(process.log, lines=15)
                raise CannotStart(f"{process.name} failed to start. Last lines of {process.log}:\n{lines}")
        if time.monotonic() > deadline:
            raise CannotStart(f"The service was not ready after {READY_SECONDS} s. See the logs in {logs}.")
        time.sleep(0.1)


def _is_ready(port: int) -> bool:
    """Return whether the service is ready, apart from a pause of sending, which only `bin/manage release` ends."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/readyz")
        response = connection.getresponse()
        if response.status == http.HTTPStatus.OK:
            return True
        complaints = json.loads(response.read())["complaints"]
        return all(complaint.startswith(PAUSED) for complaint in complaints)
    except (OSError, http.client.HTTPException, ValueError, LookupError):
        return False
    finally:
        connection.close()


def _welcome(demo: DemoAccount, data: DataDirectory, environment: Mapping[str, str]) -> str:
    """Return the logins, the URLs and example requests."""
    logins = demo.logins
    staff_name = logins.get("staffEmail") or logins.get("staffUsername")
    staff = f"{staff_name}   {logins.get('staffPassword')}" if staff_name else "login not stored"
    return WELCOME.format(
        base=demo.base_url,
        email=logins["dashboardEmail"],
        password=logins["dashboardPassword"],
        inbox=demo.inbox_url,
        staff=staff,
        key=logins["apiKey"],
        curl=demo.curl(),
        smtp=demo.curl_smtp(environment["SUBMISSION_PORTS"].partition(",")[0]),
        received=_received(demo, environment),
        demo_json=data.demo,
        logs=data.logs,
    )


def _received(demo: DemoAccount, environment: Mapping[str, str]) -> str:
    """Return the address that receives email with an example; empty without one."""
    address = demo.receiving_address(int(environment["PORT"]))
    if address is None:
        return ""
    curl = demo.curl_received(address, environment["INBOUND_PORT"])
    return RECEIVED.format(address=address, base=demo.base_url, curl=curl)
