"""Fixtures: one running service for the code samples, and the programs that run them."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from tests.clients.node import copy_package, need_node, run
from tests.stack.stack import REPOSITORY, Stack, running_stack
from tests.standards.tools import program

SECONDS = 180


@dataclass(frozen=True)
class SampleLanguage:
    """A program that runs code samples. package: of Debian; empty for programs that tests need anyway."""

    command: tuple[str, ...]
    file: str
    package: str = ""

    def arguments(self, file: Path) -> list[str]:
        name, *options = self.command
        return [program(name, package=self.package) if self.package else name, *options, str(file)]


LANGUAGES = {
    "sh": SampleLanguage(("bash", "-euo", "pipefail"), "sample.sh", "bash"),
    "javascript": SampleLanguage(("node",), "sample.mjs", "nodejs"),
    "python": SampleLanguage((sys.executable,), "sample.py"),
    "php": SampleLanguage(("php",), "sample.php", "php-cli"),
    "ruby": SampleLanguage(("ruby",), "sample.rb", "ruby"),
    "go": SampleLanguage(("go", "run"), "sample.go", "golang-go"),
}


@dataclass(frozen=True)
class SampleRunner:
    """Runs samples in an empty directory. programs: a directory with a curl that fails after an error."""

    stack: Stack
    programs: Path
    libraries: Path

    def with_key(self, variable: str) -> "SampleRunner":
        """Return a runner with the key of a variable of the environment."""
        return replace(self, stack=replace(self.stack, key=self.stack.environment[variable]))

    def environment(self, home: Path) -> dict[str, str]:
        return {
            **self.stack.environment,
            "PATH": f"{self.programs}:{os.environ['PATH']}",
            "PYTHONPATH": f"{home}:{REPOSITORY / 'clients' / 'python' / 'src'}",
            "POSTRIDER_URL": self.stack.url,
            "POSTRIDER_API_KEY": self.stack.key,
            "DJANGO_SETTINGS_MODULE": "settings",
        }

    def command(self, language: str, source: str, *, home: Path) -> list[str]:
        """Write the sample into a directory; return the command that runs it there."""
        modules = home / "node_modules"
        if not modules.exists():
            modules.symlink_to(self.libraries)
        file = home / LANGUAGES[language].file
        file.write_text(source)
        return LANGUAGES[language].arguments(file)

    def run(self, language: str, source: str, *, home: Path) -> str:
        """Return the output of a sample. Raises AssertionError if it fails."""
        command = self.command(language, source, home=home)
        done = subprocess.run(
            command,
            cwd=home,
            env=self.environment(home),
            capture_output=True,
            text=True,
            # A downloaded file.
            errors="replace",
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{source}\n{done.stdout}\n{done.stderr}"
        return done.stdout


@pytest.fixture(scope="package")
def stack(tmp_path_factory: Any) -> Any:
    # The simulator's deferred address is delivered after two waits.
    with running_stack(tmp_path_factory.mktemp("samples"), DELIVERY_RETRY_SECONDS="1,1,1") as stack:
        stack.start("inbox", "inbound", "worker", "beat", "web")
        yield stack


@pytest.fixture(scope="session")
def libraries(tmp_path_factory: Any) -> Path:
    """Return a node_modules directory with the built JavaScript library."""
    need_node()
    home: Path = tmp_path_factory.mktemp("libraries")
    package = copy_package("clients/javascript", into=home)
    run("npm", "run", "build", cwd=package)
    modules = home / "node_modules"
    modules.mkdir()
    (modules / "postrider").symlink_to(package)
    return modules


@pytest.fixture(scope="package")
def runner(stack: Stack, libraries: Path, tmp_path_factory: Any) -> SampleRunner:
    programs: Path = tmp_path_factory.mktemp("programs")
    curl = programs / "curl"
    curl.write_text(f'#!/bin/sh\nexec {program("curl", package="curl")} --fail-with-body -sS "$@"\n')
    curl.chmod(0o755)
    program("jq", package="jq")
    workspace = ("--name", "samples", "--workspace", stack.call("GET", "/me").body["workspace"]["id"])
    keys = {
        "POSTRIDER_MANAGEMENT_KEY": stack.manage("create_management_key", "--name", "samples"),
        "POSTRIDER_TEST_API_KEY": stack.manage("create_api_key", *workspace, "--scope", "sending_access", "--test"),
        "POSTRIDER_APPROVALS_KEY": stack.manage("create_api_key", *workspace, "--scope", "approvals"),
    }
    stack.environment.update({variable: json.loads(answer)["key"] for variable, answer in keys.items()})
    return SampleRunner(stack, programs, libraries)
