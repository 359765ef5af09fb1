"""Settings of the launcher, and the environment of the processes that it starts."""

from collections.abc import Mapping
from dataclasses import dataclass

from tools.embedded.errors import CannotStart
from tools.embedded.given_settings import resolve_files
from tools.embedded.locations import DataDirectory, data_directory
from tools.embedded.processes.processes import wait_until
from tools.embedded.secret_keys import load_secrets
from tools.embedded.servers.ports import choose_ports, is_free, reserve_port
from tools.embedded.terminal import print_status

MAX_PORT = 65535
SUBMISSION_PORT, INBOUND_PORT = 2525, 2526


@dataclass(frozen=True)
class LauncherSettings:
    """The data directory, port and public URL of the service."""

    data: DataDirectory
    port: int
    public_url: str


def read_settings(environment: Mapping[str, str]) -> LauncherSettings:
    """Return the settings. Raises CannotStart for an invalid one."""
    port = _read_port(environment.get("PORT") or "8000")
    url = environment.get("PUBLIC_URL") or f"http://127.0.0.1:{port}"
    return LauncherSettings(data_directory(environment), port, url.rstrip("/"))


def refuse_busy_port(port: int, *, timeout_seconds: float = 0) -> None:
    """Raise CannotStart when the port does not become free within `timeout_seconds`."""
    try:
        if is_free(port):
            return
        if timeout_seconds:
            print_status(f"Waiting for port {port}: processes of a killed launcher are finishing their requests …")
        if wait_until(lambda: is_free(port), seconds=timeout_seconds):
            return
    except PermissionError:
        raise CannotStart(f"PORT={port} requires root. Use a port above 1023.") from None
    raise CannotStart(
        f"Port {port} is already in use. Stop the other program, or use another port"
        f" (PORT={port + 1 if port < MAX_PORT else 8000} bin/run)."
    )


def service_environment(
    settings: LauncherSettings, given: Mapping[str, str], urls: Mapping[str, str]
) -> dict[str, str]:
    """Return the environment of every process: the caller's environment and the settings of the launcher.

    urls: DATABASE_URL and REDIS_URL of the servers that the launcher started.
    """
    # Other services on this machine, and other launchers, may use the usual ports.
    submission_port, inbound_port = (
        given.get(name) or str(usual if reserve_port(usual) else choose_ports(1)[0])
        for name, usual in (("SUBMISSION_PORTS", SUBMISSION_PORT), ("INBOUND_PORT", INBOUND_PORT))
    )
    overrides = {
        **urls,
        **load_secrets(settings.data, given),
        "MODE": "embedded",
        "DATA_DIR": str(settings.data.path),
        "PORT": str(settings.port),
        "PUBLIC_URL": settings.public_url,
        "INBOX_PORT": given.get("INBOX_PORT") or str(choose_ports(1)[0]),
        "INBOUND_PORT": inbound_port,
        "SUBMISSION_PORTS": submission_port,
        # Enough for a trial, and idle processes cost memory (docs/decisions/0077).
        "WEB_CONCURRENCY": given.get("WEB_CONCURRENCY") or "2",
        "WORKER_CONCURRENCY": given.get("WORKER_CONCURRENCY") or "1",
        "PROMETHEUS_MULTIPROC_DIR": str(settings.data.metrics),
        "STATIC_ROOT": str(settings.data.static_files),
        "PYTHONUNBUFFERED": "1",  # logs are written without delay
    }
    return {name: value for name, value in resolve_files(given).items() if name != "POSTRIDER_CALLED_FROM"} | overrides


def _read_port(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= MAX_PORT:
        raise CannotStart(f"PORT={text} is invalid. Use a number from 1 to {MAX_PORT}.")
    return int(text)
