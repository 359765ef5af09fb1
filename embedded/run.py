"""`bin/run`: the whole service on this machine, until Ctrl-C."""

import http.client
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import NoReturn

from embedded.commands import run_command
from embedded.data_dir_lock import Runtime, claim, is_unclaimed, read_runtime, refuse_if_running, write_runtime
from embedded.demo import prepare_demo
from embedded.environment import enter_environment
from embedded.errors import CannotStart
from embedded.locations import REPOSITORY, DataDirectory
from embedded.logs import open_log
from embedded.processes.processes import start_in_session
from embedded.processes.programs import MIGRATE, PROGRAMS, Program
from embedded.processes.signals import Ended, raise_on_signals
from embedded.processes.supervisor import PROGRAM, Service, Supervisor
from embedded.processes.watchdog import Watchdog
from embedded.servers.homes import find_earlier_homes
from embedded.servers.server import last_words
from embedded.servers.startup import start_servers
from embedded.settings import (
    Settings,
    read_settings,
    refuse_busy_port,
    service_environment,
    settings_of_service,
)
from embedded.terminal import say, show
from embedded.welcome import welcome

READY_SECONDS = 90
# A program that died so often before the service was ready will not come up.
TOO_MANY_FAILURES = 2


def run(arguments: list[str]) -> int:
    """Return when a signal ended the service, with 0 when all has ended in good order."""
    if arguments:
        raise CannotStart("bin/run takes no arguments: settings come from the environment.")
    settings = read_settings(os.environ)
    settings.data.create()
    refuse_if_running(settings.data)
    if is_unclaimed(settings.data):
        _refuse_busy_port(settings)  # before a long installation
    enter_environment("requirements-embedded.txt")
    raise_on_signals()
    lock = claim(settings.data)
    _refuse_busy_port(settings)
    watchdog = Watchdog(lock=lock)
    watchdog.withdraw_at_end(settings.data.runtime)
    supervisor = Supervisor(watchdog)
    try:
        _serve(settings, supervisor)
    except Ended:
        say("Stopping … (once more to hurry)")
        return 0
    finally:
        settings.data.runtime.unlink(missing_ok=True)
        supervisor.stop()
        watchdog.dismiss()


def _refuse_busy_port(settings: Settings) -> None:
    killed = read_runtime(settings.data)  # whoever ends in good order withdraws it
    may_be_its_web = killed is not None and killed.environment.get("PORT") == str(settings.port)
    (_, to_end_seconds), *_ = next(program for program in PROGRAMS if program.name == "web").ladder
    refuse_busy_port(settings.port, patience_seconds=to_end_seconds if may_be_its_web else 0)


def _serve(settings: Settings, supervisor: Supervisor) -> NoReturn:
    """Start everything, say so, and keep it running; only an exception ends it."""
    data = settings.data
    say("Starting the database and the broker …")
    for earlier in find_earlier_homes(data.path):
        say(f"Data of an earlier start is still in {earlier}; remove it when you do not need it.")
    urls = start_servers(data, os.environ, supervisor)
    environment = service_environment(settings, os.environ, urls)
    servers = {s.name: s.process.pid for s in supervisor.services if s.process}
    write_runtime(data, Runtime("run", os.getpid(), settings_of_service(environment), servers))
    say("Preparing the database …")
    run_command(MIGRATE, environment=environment, failure="The database could not be prepared:")
    demo = prepare_demo(data, settings.public_url, environment)
    say(f"Starting {', '.join(program.name for program in PROGRAMS)} …")
    for program in PROGRAMS:
        supervisor.start(_service(program, environment, data))
    _wait_until_ready(settings.port, supervisor, logs=data.logs)
    show(welcome(demo, data))
    while True:
        supervisor.tend()
        time.sleep(0.2)


def _service(program: Program, environment: Mapping[str, str], data: DataDirectory) -> Service:
    log = data.logs / f"{program.name}.log"
    return Service(
        name=program.name,
        launch=partial(_launch, program, environment, data),
        ladder=program.ladder,
        stage=PROGRAM,
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
        supervisor.tend()
        for service in supervisor.services:
            if service.failures >= TOO_MANY_FAILURES:
                words = last_words(Path(service.log), lines=15)
                raise CannotStart(f"{service.name} does not start; {service.log} ends:\n{words}")
        if time.monotonic() > deadline:
            raise CannotStart(f"The service is not ready after {READY_SECONDS} s; see the logs in {logs}.")
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
