"""What the launcher reads from the environment, and what it sets for the processes it starts."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from embedded.errors import CannotStart
from embedded.locations import REPOSITORY, DataDirectory, data_directory
from embedded.processes.waiting import wait_until
from embedded.secret_keys import keep_secrets
from embedded.servers.ports import choose_ports, is_free
from embedded.terminal import say

LAST_PORT = 65535
# A setting is a line NAME=value of .env.example, commented out or not.
SETTING = re.compile(r"^#? ?([A-Z][A-Z0-9_]*)=", re.MULTILINE)


@dataclass(frozen=True)
class Settings:
    """Where the service keeps its files and where it listens."""

    data: DataDirectory
    port: int
    public_url: str


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Raise CannotStart when a setting makes no sense."""
    port = _read_port(environment.get("PORT") or "8000")
    url = environment.get("PUBLIC_URL") or f"http://127.0.0.1:{port}"
    return Settings(data_directory(environment), port, url.rstrip("/"))


def refuse_busy_port(port: int, *, patience_seconds: float = 0) -> None:
    """Raise CannotStart when the web process could not listen on the port, not even after a while."""
    try:
        if is_free(port):
            return
        if patience_seconds:
            say(f"Waiting for port {port}: programs of a launcher that was killed answer their last requests …")
        if wait_until(lambda: is_free(port), seconds=patience_seconds):
            return
    except PermissionError:
        raise CannotStart(f"PORT={port} is for root alone: choose one above 1023.") from None
    raise CannotStart(
        f"Port {port} is in use by another program: stop that one, or choose another port"
        f" (PORT={port + 1 if port < LAST_PORT else 8000} bin/run)."
    )


def service_environment(settings: Settings, given: Mapping[str, str], urls: Mapping[str, str]) -> dict[str, str]:
    """Return the environment of every process: the caller's own, and what the launcher decides.

    urls: DATABASE_URL and REDIS_URL.
    """
    decided = {
        **urls,
        **keep_secrets(settings.data, given),
        "MODE": "embedded",
        "DATA_DIR": str(settings.data.path),
        "PORT": str(settings.port),
        "PUBLIC_URL": settings.public_url,
        "INBOX_PORT": given.get("INBOX_PORT") or str(choose_ports(1)[0]),
        "PYTHONUNBUFFERED": "1",  # a log that lags behind helps nobody
    }
    return {name: text for name, text in given.items() if name != "POSTRIDER_CALLED_FROM"} | decided


def settings_of_service(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the part of an environment that is this service's: what .env.example names."""
    example = REPOSITORY / ".env.example"
    named = set(SETTING.findall(example.read_text())) if example.exists() else set()
    own = {"MODE", "DATA_DIR", "PORT", "PUBLIC_URL", "DATABASE_URL", "REDIS_URL"}
    own |= {"SECRET_KEY", "APP_KEYS", "INBOX_PORT"}
    return {name: text for name, text in environment.items() if name in named | own}


def _read_port(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= LAST_PORT:
        raise CannotStart(f"PORT={text} is not a port: choose a number from 1 to {LAST_PORT}.")
    return int(text)
