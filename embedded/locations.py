"""Where things are: the repository, and the files of a DATA_DIR."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
VENV = REPOSITORY / ".venv"


@dataclass(frozen=True)
class DataDirectory:
    """The files that one embedded service keeps."""

    path: Path

    @property
    def demo(self) -> Path:
        """What a script needs to use the demo account."""
        return self.path / "demo.json"

    @property
    def logs(self) -> Path:
        """One log per process."""
        return self.path / "log"

    @property
    def private(self) -> Path:
        """Closed to everybody else."""
        return self.path / "private"

    @property
    def secrets(self) -> Path:
        """The keys made at the first start."""
        return self.private / "secrets.json"

    @property
    def logins(self) -> Path:
        """Every login of the demo, to be printed again at each start."""
        return self.private / "logins.json"

    @property
    def runtime(self) -> Path:
        """What `bin/manage` must know of the servers that run now."""
        return self.private / "runtime.json"

    def create(self) -> None:
        """Make the directories, closed to other users."""
        # Root's servers run as somebody else and must pass through to their home.
        self.path.mkdir(parents=True, exist_ok=True, mode=0o711 if os.geteuid() == 0 else 0o700)
        for directory in (self.private, self.logs):
            directory.mkdir(exist_ok=True, mode=0o700)
            directory.chmod(0o700)


def data_directory(environment: Mapping[str, str]) -> DataDirectory:
    """Return the DATA_DIR: a relative one counts from where the command was called."""
    given = environment.get("DATA_DIR")
    if not given:
        return DataDirectory(REPOSITORY / "var")
    caller = Path(environment.get("POSTRIDER_CALLED_FROM") or Path.cwd())
    return DataDirectory((caller / given).resolve())


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner reads, whole or not at all."""
    unfinished = path.with_name(f"{path.name}.unfinished")
    unfinished.unlink(missing_ok=True)
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    unfinished.rename(path)
