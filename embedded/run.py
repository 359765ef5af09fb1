"""`bin/run`: run the whole service on this machine until Ctrl-C."""

import http.client
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import NoReturn

from embedded.commands import run_command
from embedded.data_dir_lock import (
    LauncherRuntime,
    acquire_lock,
    is_lock_free,
    read_runtime,
    refuse_if_running,
    write_runtime,
)
from embedded.demo import DemoAccount, prepare_demo
from embedded.environment import enter_environment
from embedded.errors import CannotStart
from embedded.locations import REPOSITORY, DataDirectory
from embedded.logs import open_log, read_log_tail
from embedded.processes.processes import start_in_session
from embedded.processes.programs import COLLECT_STATIC, MIGRATE, PROGRAMS, Program
from embedded.processes.signals import StopRequested, raise_on_signals
from embedded.processes.supervisor import PROGRAM_STAGE, SupervisedProcess, Supervisor
from embedded.processes.watchdog import Watchdog
from embedded.servers.server_directories import find_orphaned_directories
from embedded.servers.startup import start_servers
from embedded.settings import (
    LauncherSettings,
    read_settings,
    refuse_busy_port,
    service_environment,
    settings_of_service,
)
from embedded.terminal import print_output, print_status

READY_SECONDS = 90
# A program that exits this often before the service is ready will not start.
MAX_START_FAILURES = 2

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

Logins: {demo_json}. Logs: {logs}.
Press Ctrl-C to stop. Data is kept between runs.
"""


def run(arguments: list[str]) -> int:
    """Run the service until a signal stops it; return 0."""
    if arguments:
        raise CannotStart("bin/run takes no arguments. Set environment variables instead.")
    settings = read_settings(os.environ)
    settings.data.create()
    refuse_if_running(settings.data)
    if is_lock_free(settings.data):
        _refuse_busy_port(settings)  # fail before a long installation
    enter_environment("requirements-embedded.txt")
    raise_on_signals()
    lock = acquire_lock(settings.data)
    _refuse_busy_port(settings)
    watchdog = Watchdog(lock=lock)
    watchdog.remove_at_end(settings.data.runtime)
    supervisor = Supervisor(watchdog)
    try:
        _serve(settings, supervisor)
    except StopRequested:
        print_status("Stopping … (press Ctrl-C again to force)")
        return 0
    finally:
        settings.data.runtime.unlink(missing_ok=True)
        supervisor.stop()
        watchdog.close()


def _refuse_busy_port(settings: LauncherSettings) -> None:
    killed = read_runtime(settings.data)  # a launcher that stops normally removes it
    may_be_killed_web = killed is not None and killed.environment.get("PORT") == str(settings.port)
    (_, stop_seconds), *_ = PROGRAMS[0].stop_sequence
    refuse_busy_port(settings.port, timeout_seconds=stop_seconds if may_be_killed_web else 0)


def _serve(settings: LauncherSettings, supervisor: Supervisor) -> NoReturn:
    """Start all processes, print the welcome message, and keep them running until an exception."""
    data = settings.data
    print_status("Starting PostgreSQL and Redis …")
    for orphaned in find_orphaned_directories(data.path):
        print_status(f"Data from a removed DATA_DIR is still in {orphaned}. Delete it if you do not need it.")
    urls = start_servers(data, os.environ, supervisor)
    environment = service_environment(settings, os.environ, urls)
    servers = {s.name: s.process.pid for s in supervisor.processes if s.process}
    write_runtime(data, LauncherRuntime("run", os.getpid(), settings_of_service(environment), servers))
    print_status("Applying database migrations …")
    run_command(MIGRATE, environment=environment, failure="Database migrations failed:")
    run_command(COLLECT_STATIC, environment=environment, failure="The static files could not be collected:")
    shutil.rmtree(data.metrics, ignore_errors=True)
    data.metrics.mkdir()
    demo = prepare_demo(data, settings.public_url, environment)
    print_status(f"Starting {', '.join(program.name for program in PROGRAMS)} …")
    for program in PROGRAMS:
        supervisor.start(_supervised(program, environment, data))
    _wait_until_ready(settings.port, supervisor, logs=data.logs)
    print_output(_welcome(demo, data, port=environment["SUBMISSION_PORTS"].partition(",")[0]))
    while True:
        supervisor.check()
        time.sleep(1)


def _supervised(program: Program, environment: Mapping[str, str], data: DataDirectory) -> SupervisedProcess:
    log = data.logs / f"{program.name}.log"
    return SupervisedProcess(
        name=program.name,
        launch=partial(_launch, program, environment, data),
        stop_sequence=program.stop_sequence,
        stage=PROGRAM_STAGE,
        log=str(log),
    )


def _launch(program: Program, environment: Mapping[str, str], data: DataDirectory) -> subprocess.Popen[bytes]:
    with open_log(data.logs / f"{program.name}.log") as output:
        return start_in_session(
            [sys.executable, *program.arguments],
            environment=environment,
            directory=REPOSITORY,
            output=output,
        )


def _wait_until_ready(port: int, supervisor: Supervisor, *, logs: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while not _is_ready(port):
        supervisor.check()
        for process in supervisor.processes:
            if process.failures >= MAX_START_FAILURES:
                lines = read_log_tail(Path(process.log), lines=15)
                raise CannotStart(f"{process.name} failed to start. Last lines of {process.log}:\n{lines}")
        if time.monotonic() > deadline:
            raise CannotStart(f"The service was not ready after {READY_SECONDS} s. See the logs in {logs}.")
        time.sleep(0.1)


def _is_ready(port: int) -> bool:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/readyz")
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def _welcome(demo: DemoAccount, data: DataDirectory, *, port: str) -> str:
    """Return the logins, the URLs and an example request."""
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
        smtp=demo.curl_smtp(port),
        demo_json=data.demo,
        logs=data.logs,
    )
