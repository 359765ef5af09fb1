"""The container image, built with buildah, and its processes, started as deploy/compose.yaml describes them."""

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

import yaml
from dotenv import dotenv_values

from tests.deploy.debian import copy_source, pip_configuration, pip_directories, root_archive, run
from tests.stack.stack import REPOSITORY
from tests.standards import tools

COMPOSE = REPOSITORY / "deploy" / "compose.yaml"
# The isolation that works without a daemon, user namespaces or a container runtime.
BUILDAH = {**os.environ, "BUILDAH_ISOLATION": "chroot"}
# The restrictions of compose.yaml: a read-only root file system with a separate /tmp, no capability, no new privilege.
CONTAINER = """
set -e
mount --make-rprivate /
mount --bind "$ROOT" "$ROOT"
mount -o remount,bind,ro "$ROOT"
mount -t proc proc "$ROOT/proc"
mount --rbind /dev "$ROOT/dev"
mount -t tmpfs tmpfs "$ROOT/tmp"
exec env -u ROOT chroot "$ROOT" setpriv --reuid=10001 --regid=10001 --clear-groups --no-new-privs \\
    --bounding-set=-all --inh-caps=-all -- env -C /app "$@"
"""


@dataclass
class Image:
    """A built image. config: its OCI configuration; root: its files; source: the directory it was built from."""

    config: dict[str, Any]
    history: str
    root: Path
    source: Path

    @property
    def environment(self) -> dict[str, str]:
        return dict(entry.split("=", 1) for entry in self.config["Env"])

    def start(self, *arguments: str, environment: dict[str, str], log: Path) -> "subprocess.Popen[bytes]":
        """Start a container of the image on the network of this machine."""
        return self._start([*self.config["Entrypoint"], *arguments], environment, log)

    def is_healthy(self, environment: dict[str, str], log: Path) -> bool:
        return self._start(self.config["Healthcheck"]["Test"][1:], environment, log).wait(timeout=30) == 0

    def _start(self, command: list[str], environment: dict[str, str], log: Path) -> "subprocess.Popen[bytes]":
        with log.open("ab") as output:
            return subprocess.Popen(
                ["unshare", "--mount", "sh", "-c", CONTAINER, "container", *command],
                env={**self.environment, **environment, "ROOT": str(self.root)},
                stdout=output, stderr=output, start_new_session=True,
            )  # fmt: skip


@contextmanager
def built_image(directory: Path) -> Iterator[Image]:
    """Build the image from a copy of the work tree, with settings of pip that no layer may contain."""
    buildah = [
        tools.program("buildah", package="buildah"),
        "--root",
        directory / "storage",
        "--runroot",
        directory / "run",
    ]
    source = copy_source(directory / "source")
    (source / ".env").write_text("SECRET_KEY=planted-secret\n")
    (source / "deploy" / ".env").write_text("SECRET_KEY=planted-secret\n")
    base = directory / "base"
    base.mkdir()
    shutil.copy(root_archive("minbase", "python3", "python3-venv", "ca-certificates"), base / "root.tar")
    (base / "Dockerfile").write_text("FROM scratch\nADD root.tar /\n")
    pip = directory / "pip.conf"
    pip.write_text(pip_configuration())
    volumes = [f"--volume={path}:{path}:ro" for path in pip_directories()]
    build = [*buildah, "bud", "--network=host", "--format=docker"]
    try:
        run(*build, "--tag=localhost/base", base, env=BUILDAH)
        run(
            *build, "--tag=localhost/postrider", "--build-arg=BASE=localhost/base", f"--secret=id=pip,src={pip}",
            *volumes, f"--file={source / 'deploy/Dockerfile'}", source, env=BUILDAH,
        )  # fmt: skip
        container = run(*buildah, "from", "localhost/postrider", env=BUILDAH).split()[-1]
        root = Path(run(*buildah, "mount", container, env=BUILDAH).split()[-1])
        described = json.loads(run(*buildah, "inspect", "--type=image", "localhost/postrider", env=BUILDAH))
        yield Image(described["Docker"]["config"], json.dumps(described["History"]), root, source)
    finally:
        run(*buildah, "rm", "--all", env=BUILDAH)
        run(*buildah, "rmi", "--all", "--force", env=BUILDAH)


@dataclass
class Compose:
    """The services of compose.yaml that run from the image."""

    image: Image
    file: Path
    logs: Path
    changes: dict[str, str]
    running: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    @property
    def services(self) -> dict[str, Any]:
        """Return the services in the order in which compose starts them."""
        every: dict[str, Any] = yaml.safe_load(COMPOSE.read_text())["services"]
        order = TopologicalSorter({name: list(service.get("depends_on", {})) for name, service in every.items()})
        return {name: every[name] for name in order.static_order() if "env_file" in every[name]}

    def environment(self, name: str) -> dict[str, str]:
        given = {key: value or "" for key, value in dotenv_values(self.file, interpolate=False).items()}
        required = {key: expand(value, given) for key, value in self.services[name]["environment"].items()}
        return {**given, **required, **self.changes}

    def start(self, name: str) -> None:
        self.running[name] = self.image.start(
            *self.services[name]["command"], environment=self.environment(name), log=self.log(name)
        )

    def log(self, name: str) -> Path:
        return self.logs / f"{name}.log"

    def finish(self, name: str) -> None:
        """Run a service that ends by itself. Raises AssertionError with its log if it fails."""
        self.start(name)
        assert self.running.pop(name).wait(timeout=120) == 0, self.log(name).read_text()

    def is_healthy(self) -> bool:
        return self.image.is_healthy(self.environment("web"), self.log("health"))

    def manage(self, *arguments: str) -> Any:
        """Run a management command in a container; return the JSON that it prints."""
        log = self.log(arguments[0])
        process = self.image.start("manage", *arguments, environment=self.environment("web"), log=log)
        assert process.wait(timeout=60) == 0, log.read_text()
        return json.loads(log.read_text())

    def kill(self, name: str) -> None:
        process = self.running.pop(name)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def stop(self, name: str) -> int:
        """Stop a service as compose does; return its exit status. Raises TimeoutExpired after its grace period."""
        process = self.running.pop(name)
        process.terminate()
        return process.wait(timeout=int(self.services[name].get("stop_grace_period", "10s").removesuffix("s")))


def expand(text: str, values: dict[str, str]) -> str:
    """Expand ${NAME:?message} and ${NAME:-default} as compose does."""

    def value(match: re.Match[str]) -> str:
        name, kind, rest = match.groups()
        assert values.get(name) or kind == "-", rest
        return values.get(name) or rest

    return re.sub(r"\$\{(\w+):([?-])([^}]*)\}", value, text)
