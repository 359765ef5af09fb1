"""Paths of the repository and of the files in a DATA_DIR."""

import os
from collections.abc import Mapping
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
VENV = REPOSITORY / ".venv"


class DataDirectory:
    """The files of one embedded service."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # One log per process.
        self.logs = path / "log"
        # The logins of the demo account, for scripts.
        self.demo = path / "demo.json"
        # Only the owner can read this directory.
        self.private = path / "private"
        # The keys generated at the first start.
        self.secrets = self.private / "secrets.json"
        # All logins of the demo, printed at each start.
        self.logins = self.private / "logins.json"
        # The description of the running launcher, read by `bin/manage`.
        self.runtime = self.private / "runtime.json"
        # The request latencies of the web processes, emptied at each start.
        self.metrics = self.private / "metrics"
        # Collected at each start.
        self.static_files = self.private / "static"

    def create(self) -> None:
        """Create the directories, without access for other users."""
        # Servers started by root run as another user, who must be able to enter their directory.
        self.path.mkdir(parents=True, exist_ok=True, mode=0o711 if os.geteuid() == 0 else 0o700)
        for directory in (self.private, self.logs):
            directory.mkdir(exist_ok=True, mode=0o700)
            directory.chmod(0o700)


def data_directory(environment: Mapping[str, str]) -> DataDirectory:
    """Return the DATA_DIR; a relative path is relative to the caller's working directory."""
    directory = environment.get("DATA_DIR")
    if not directory:
        return DataDirectory(REPOSITORY / "var")
    caller = Path(environment.get("POSTRIDER_CALLED_FROM") or Path.cwd())
    return DataDirectory((caller / directory).resolve())


def write_private(path: Path, text: str) -> None:
    """Write a file atomically, readable only by its owner."""
    unfinished = path.with_name(f"{path.name}.unfinished")
    unfinished.unlink(missing_ok=True)
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    unfinished.rename(path)
