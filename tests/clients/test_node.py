"""JavaScript packages: built, and tested with Node against the running service (docs/decisions/0049)."""

import json
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


def test_the_examples_of_the_javascript_library_run(javascript, service):
    environment = {**service.environment, "FROM": "hello@demo.example"}
    for example in ("send.mjs", "batch.mjs", "receive-webhooks.mjs"):
        assert "done" in run("node", f"examples/{example}", cwd=javascript, env=environment), example


def test_the_packed_nodes_have_the_files_that_n8n_requires(n8n, tmp_path):
    # Packed and installed without network access.
    packed = run("npm", "pack", "--silent", "--pack-destination", str(tmp_path), cwd=n8n).split()[-1]
    (tmp_path / "package.json").write_text('{"private": true}')
    options = ["--offline", "--legacy-peer-deps", "--no-audit", "--no-fund"]
    run("npm", "install", *options, str(tmp_path / packed), cwd=tmp_path)
    package = tmp_path / "node_modules" / "n8n-nodes-postrider"
    description = json.loads((package / "package.json").read_text())
    assert "n8n-community-node-package" in description["keywords"]
    assert not description.get("dependencies")
    for file in (*description["n8n"]["nodes"], *description["n8n"]["credentials"]):
        assert (package / file).is_file()
    for icon in ("postrider.svg", "postrider.dark.svg"):
        assert (package / "dist" / "nodes" / "Postrider" / icon).is_file()
