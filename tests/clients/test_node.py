"""JavaScript packages: built, and tested with Node against the running service (docs/decisions/0049)."""

import json
import os
from pathlib import Path

import pytest

from tests.clients.node import copy_package, run
from tests.stack.stack import REPOSITORY

pytestmark = pytest.mark.stack

VECTOR = REPOSITORY / "docs" / "webhook-vector.json"


@pytest.fixture(scope="module")
def javascript(node, tmp_path_factory):
    """Return the built JavaScript library."""
    package = copy_package("clients/javascript", into=tmp_path_factory.mktemp("javascript"))
    run("npm", "run", "build", cwd=package)
    return package


@pytest.fixture(scope="module")
def n8n(node, tmp_path_factory):
    """Return the built n8n nodes."""
    package = copy_package("clients/n8n", into=tmp_path_factory.mktemp("n8n"))
    run("npm", "run", "build", cwd=package)
    return package


@pytest.fixture(scope="module")
def project(javascript, tmp_path_factory):
    """Return an empty project with the packed JavaScript library installed."""
    return installed(javascript, into=tmp_path_factory.mktemp("project"))


def test_the_javascript_library(javascript, service):
    node_test(javascript, service)


def test_the_n8n_nodes_in_n8ns_engine(n8n, service):
    node_test(n8n, service)


def test_the_zapier_app_in_zapiers_harness(node, service, tmp_path):
    node_test(copy_package("clients/zapier", into=tmp_path), service)


def node_test(package: Path, service) -> None:
    files = sorted(str(file) for file in (package / "test").glob("*.test.mjs"))
    environment = {**service.environment, "WEBHOOK_VECTOR": str(VECTOR)}
    run("node", "--test", "--test-timeout=120000", *files, cwd=package, env=environment)


def test_the_packed_library_works_in_an_empty_project_as_a_module_and_as_commonjs(project, service):
    use = "new Postrider().me().then((me) => console.log(me.workspace.id));\n"
    (project / "module.mjs").write_text('import { Postrider } from "postrider";\n' + use)
    (project / "common.cjs").write_text('const { Postrider } = require("postrider");\n' + use)
    for name in ("module.mjs", "common.cjs"):
        assert run("node", name, cwd=project, env=service.environment).startswith("ws_")


def test_the_types_of_the_packed_library_are_found_and_correct(javascript, project):
    program = (
        'import { Postrider, QuotaExceededError, verifyWebhook, type Accepted, type ReceivedEvent } from "postrider";\n'
        "const client = new Postrider();\n"
        "export async function send(): Promise<Accepted> {\n"
        "  for await (const email of client.emails.list({ status: 'bounced' })) void email.sentAt?.length;\n"
        "  // @ts-expect-error - an email needs a sender\n"
        '  await client.emails.send({ to: "ada@example.com" });\n'
        '  await client.emails.send({ from: "a@b.c", inReplyToId: "inb_x", text: "t" });\n'
        "  // @ts-expect-error - an email that answers none needs a recipient\n"
        '  await client.emails.send({ from: "a@b.c", text: "t" });\n'
        "  for await (const { id } of client.inbound.emails.list({ status: 'processed' }))\n"
        "    void (await client.inbound.emails.get(id)).replyToEmail?.fromRecipient;\n"
        '  const email = { from: "a@b.c", to: ["d@e.f"], subject: "s", text: "t", scheduledFor: new Date() };\n'
        "  return client.emails.send(email);\n"
        "}\n"
        "export const text = async (body: string, headers: Headers): Promise<string> =>\n"
        '  (await verifyWebhook<ReceivedEvent>(body, headers, "whsec_")).data.text;\n'
        "export const end = (error: QuotaExceededError): number => error.resetsAt.getTime();\n"
    )
    for name in ("module.mts", "common.cts"):
        (project / name).write_text(program)
    compiler = str(javascript / "node_modules" / ".bin" / "tsc")
    options = ["--noEmit", "--strict", "--target", "es2022", "--lib", "es2022,dom,esnext", "--types", ""]
    run(compiler, *options, "--module", "nodenext", "module.mts", "common.cts", cwd=project)


@pytest.mark.parametrize("example", ["send.mjs", "batch.mjs", "receive-webhooks.mjs"])
def test_the_examples_of_the_javascript_library_run(javascript, service, example):
    out = run("node", f"examples/{example}", cwd=javascript, env={**service.environment, "FROM": "hello@demo.example"})
    assert "done" in out


def test_the_packed_nodes_have_the_files_that_n8n_requires(n8n, tmp_path):
    project = installed(n8n, into=tmp_path, legacy_peers=True)
    package = project / "node_modules" / "n8n-nodes-postrider"
    description = json.loads((package / "package.json").read_text())
    assert "n8n-community-node-package" in description["keywords"]
    assert not description.get("dependencies")
    for file in (*description["n8n"]["nodes"], *description["n8n"]["credentials"]):
        assert (package / file).is_file()
    for icon in ("postrider.svg", "postrider.dark.svg"):
        assert (package / "dist" / "nodes" / "Postrider" / icon).is_file()


def installed(package: Path, *, into: Path, legacy_peers: bool = False) -> Path:
    """Pack a package and install it into an empty project, without network access."""
    packed = run("npm", "pack", "--silent", "--pack-destination", str(into), cwd=package).split()[-1]
    project = into / "project"
    project.mkdir()
    (project / "package.json").write_text('{"private": true}')
    peers = ["--legacy-peer-deps"] if legacy_peers else []
    environment = {**os.environ, "npm_config_audit": "false", "npm_config_fund": "false"}
    run("npm", "install", "--offline", *peers, str(into / packed), cwd=project, env=environment)
    return project
