"""The client libraries, installed from a checkout and from built archives, without this repository."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.clients.node import NETWORK_ERRORS, node_modules_of, run
from tests.deploy.debian import copy_source
from tests.stack.stack import REPOSITORY, wait_for

pytestmark = pytest.mark.stack

SOURCE = REPOSITORY / "clients"
UV = str(Path(sys.executable).with_name("uv"))
OFFLINE = ("Failed to fetch", "dns error", *NETWORK_ERRORS)

SEND_PYTHON = """
import pathlib, sys, postrider_client
assert pathlib.Path(postrider_client.__file__).with_name("py.typed").exists()
assert "django" not in sys.modules
client = postrider_client.Postrider()
print(client.emails.send(from_="hello@demo.example", to=sys.argv[1], subject="Hello", text="Hi").id)
"""
USE_JAVASCRIPT = "new Postrider().me().then((me) => console.log(me.workspace.id));\n"
TYPES = """
import { Postrider, QuotaExceededError, verifyWebhook, type Accepted, type ReceivedEvent } from "postrider";
const client = new Postrider();
export async function send(): Promise<Accepted> {
  for await (const email of client.emails.list({ status: "bounced" })) void email.sentAt?.length;
  // @ts-expect-error - an email needs a sender
  await client.emails.send({ to: "ada@example.com" });
  await client.emails.send({ from: "a@b.c", inReplyToId: "inb_x", text: "t" });
  // @ts-expect-error - an email that answers none needs a recipient
  await client.emails.send({ from: "a@b.c", text: "t" });
  for await (const { id } of client.inbound.emails.list({ status: "processed" }))
    void (await client.inbound.emails.get(id)).replyToEmail?.fromRecipient;
  const email = { from: "a@b.c", to: ["d@e.f"], subject: "s", text: "t", scheduledFor: new Date() };
  return client.emails.send(email);
}
export const text = async (body: string, headers: Headers): Promise<string> =>
  (await verifyWebhook<ReceivedEvent>(body, headers, "whsec_")).data.text;
export const end = (error: QuotaExceededError): number => error.resetsAt.getTime();
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory, node):
    """Return clients/ of a copy of the repository without generated files, with the npm packages of the library."""
    root = copy_source(tmp_path_factory.mktemp("checkout"))
    (root / "clients/javascript/node_modules").symlink_to(node_modules_of(SOURCE / "javascript"))
    return root / "clients"


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


def test_the_wheel_sends_an_email_and_the_examples_run(archives, service, tmp_path):
    python = install_python(archives / "postrider_client-1.1.0-py3-none-any.whl", tmp_path)
    send_with(python, "wheel", service, tmp_path)
    environment = {**clean(service), "FROM": "hello@demo.example"}
    for example in ("send.py", "batch.py", "receive_webhooks.py"):
        assert "done" in run(python, str(SOURCE / "python" / "examples" / example), cwd=tmp_path, env=environment)


@pytest.mark.long
@pytest.mark.parametrize("source", ["sdist", "checkout"])
def test_other_forms_of_the_python_library_send_an_email(source, archives, checkout, service, tmp_path):
    package = archives / "postrider_client-1.1.0.tar.gz" if source == "sdist" else checkout / "python"
    send_with(install_python(package, tmp_path), source, service, tmp_path)


def install_python(package, home):
    run(UV, "venv", "--python", sys.executable, str(home / "venv"), cwd=home)
    python = str(home / "venv" / "bin" / "python")
    online(UV, "pip", "install", "--python", python, str(package), cwd=home)
    return python


def send_with(python, source, service, home):
    address = f"{source}@python.example"
    run(python, "-c", SEND_PYTHON, address, cwd=home, env=clean(service))
    wait_for(lambda: service.received(address), seconds=30, what="the email arrives")


def test_the_tarball_works_in_an_empty_project_and_its_types_are_found_and_correct(
    archives, checkout, service, tmp_path, node
):
    install_javascript(archives / "postrider-1.1.0.tgz", tmp_path)
    use_javascript(node, service, tmp_path)
    for name in ("module.mts", "common.cts"):
        (tmp_path / name).write_text(TYPES)
    compiler = str(checkout / "javascript/node_modules/.bin/tsc")
    options = ["--noEmit", "--strict", "--target", "es2022", "--lib", "es2022,dom,esnext", "--types", ""]
    run(compiler, *options, "--module", "nodenext", "module.mts", "common.cts", cwd=tmp_path)


@pytest.mark.long
def test_the_built_checkout_works_in_an_empty_project(archives, checkout, service, tmp_path, node):
    # npm pack has built the library in the checkout, as `npm run build` does.
    install_javascript(checkout / "javascript", tmp_path)
    use_javascript(node, service, tmp_path)


def install_javascript(package, home):
    (home / "package.json").write_text('{"private": true}')
    run("npm", "install", "--no-audit", "--no-fund", "--offline", str(package), cwd=home)


def use_javascript(node, service, home):
    (home / "module.mjs").write_text('import { Postrider } from "postrider";\n' + USE_JAVASCRIPT)
    (home / "common.cjs").write_text('const { Postrider } = require("postrider");\n' + USE_JAVASCRIPT)
    for name in ("module.mjs", "common.cjs"):
        assert run(node, name, cwd=home, env=clean(service)).startswith("ws_"), name


def test_archives_contain_no_generated_or_foreign_files(archives):
    listed = run("tar", "-tzf", str(archives / "postrider-1.1.0.tgz"), cwd=archives).split()
    assert "package/dist/esm/index.js" in listed
    assert "package/dist/cjs/index.d.ts" in listed
    assert not [name for name in listed if "node_modules" in name or "/src/" in name or "/test/" in name]


def test_editors_find_the_texts_of_the_api_in_the_archives(archives):
    tarball, wheel = archives / "postrider-1.1.0.tgz", archives / "postrider_client-1.1.0-py3-none-any.whl"
    types = run("tar", "-xzOf", str(tarball), "package/dist/esm/types.d.ts", cwd=archives)
    assert "/** Whether the preference page of recipients lists the stream. */\n    public?: boolean;" in types
    with zipfile.ZipFile(wheel) as files:
        module = files.read("postrider_client/streams.py").decode()
    assert "public: Whether the preference page of recipients lists the stream." in module


def clean(service) -> dict[str, str]:
    return {name: value for name, value in service.environment.items() if not name.startswith(("PYTHON", "DJANGO"))}
