"""The client libraries, installed from a checkout and from built archives, without this repository."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.clients.node import NETWORK_ERRORS, copy_package, run
from tests.stack.stack import REPOSITORY, wait_for

pytestmark = pytest.mark.stack

SOURCE = REPOSITORY / "clients"
UV = str(Path(sys.executable).with_name("uv"))
OFFLINE = ("Failed to fetch", "dns error", *NETWORK_ERRORS)
GENERATED = shutil.ignore_patterns("node_modules", "dist", "*.tgz", "*.egg-info", "__pycache__")

SEND_PYTHON = """
import pathlib, sys, postrider_client
assert pathlib.Path(postrider_client.__file__).with_name("py.typed").exists()
assert "django" not in sys.modules
client = postrider_client.Postrider()
print(client.emails.send(from_="hello@demo.example", to=sys.argv[1], subject="Hello", text="Hi").id)
"""
SEND_JAVASCRIPT = """
import { Postrider } from "postrider";
const email = { from: "hello@demo.example", to: process.argv[2], subject: "Hello", text: "Hi" };
console.log((await new Postrider().emails.send(email)).id);
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory, node):
    """Return a copy of clients/ as a checkout has it, with the npm packages of the library."""
    home = tmp_path_factory.mktemp("checkout")
    copy_package("clients/javascript", into=home)
    shutil.copytree(SOURCE / "python", home / "python", ignore=GENERATED)
    shutil.copy(SOURCE / "build", home)
    return home


@pytest.fixture(scope="module")
def archives(checkout, tmp_path_factory):
    """Return the directory of the archives that clients/build makes. Skips the test without a package index."""
    directory = tmp_path_factory.mktemp("archives")
    online("sh", str(checkout / "build"), str(directory), cwd=checkout)
    assert sorted(path.name for path in directory.glob("*postrider*")) == [
        "postrider-1.1.0.tgz",
        "postrider_client-1.1.0-py3-none-any.whl",
        "postrider_client-1.1.0.tar.gz",
    ]
    return directory


def online(*command, cwd):
    """Run a command that needs a package index; skip the test without one."""
    done = subprocess.run(
        command,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "PATH": f"{Path(UV).parent}:{os.environ['PATH']}"},
    )
    if any(error in done.stderr for error in OFFLINE):
        pytest.skip("the package index is unreachable")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("source", ["wheel", "sdist", "checkout"])
def test_the_python_library_sends_an_email(source, archives, checkout, service, tmp_path):
    package = {
        "wheel": archives / "postrider_client-1.1.0-py3-none-any.whl",
        "sdist": archives / "postrider_client-1.1.0.tar.gz",
        "checkout": checkout / "python",
    }[source]
    python = install_python(package, tmp_path)
    address = f"{source}@python.example"
    run(python, "-c", SEND_PYTHON, address, cwd=tmp_path, env=clean(service))
    wait_for(lambda: service.received(address), seconds=30, what="the email arrives")


def install_python(package, home):
    run(UV, "venv", "--python", sys.executable, str(home / "venv"), cwd=home)
    python = str(home / "venv" / "bin" / "python")
    online(UV, "pip", "install", "--python", python, str(package), cwd=home)
    return python


@pytest.mark.parametrize("source", ["tarball", "checkout"])
def test_the_javascript_library_sends_an_email(source, archives, checkout, service, tmp_path, node):
    # npm pack has built the library in the checkout, as `npm run build` does.
    package = archives / "postrider-1.1.0.tgz" if source == "tarball" else checkout / "javascript"
    (tmp_path / "package.json").write_text(json.dumps({"name": "shop", "private": True, "type": "module"}))
    (tmp_path / "send.js").write_text(SEND_JAVASCRIPT)
    run("npm", "install", "--no-audit", "--no-fund", "--offline", str(package), cwd=tmp_path)
    address = f"{source}@javascript.example"
    run(node, "send.js", address, cwd=tmp_path, env=clean(service))
    wait_for(lambda: service.received(address), seconds=30, what="the email arrives")


@pytest.mark.parametrize("example", ["send.py", "batch.py", "receive_webhooks.py"])
def test_the_examples_of_the_python_library_run(archives, service, tmp_path, example):
    python = install_python(archives / "postrider_client-1.1.0-py3-none-any.whl", tmp_path)
    environment = {**clean(service), "FROM": "hello@demo.example"}
    assert "done" in run(python, str(SOURCE / "python" / "examples" / example), cwd=tmp_path, env=environment)


def test_archives_contain_no_generated_or_foreign_files(archives):
    listed = run("tar", "-tzf", str(archives / "postrider-1.1.0.tgz"), cwd=archives).split()
    assert "package/dist/esm/index.js" in listed
    assert "package/dist/cjs/index.d.ts" in listed
    assert not [name for name in listed if "node_modules" in name or "/src/" in name or "/test/" in name]


def clean(service) -> dict[str, str]:
    return {name: value for name, value in service.environment.items() if not name.startswith(("PYTHON", "DJANGO"))}
