"""Every sample of the guide "Configuration as a file" runs as written."""

import json
import os
import re
import subprocess

import pytest
from markdown_it import MarkdownIt
from postrider_client import Postrider

from tests.clients.cli import PROGRAM
from tests.stack.stack import REPOSITORY

pytestmark = pytest.mark.stack

GUIDE = (REPOSITORY / "docs/guides/configuration.md").read_text()
BLOCKS = [(token.info, token.content) for token in MarkdownIt("commonmark").parse(GUIDE) if token.type == "fence"]
SINGLE, MANY = (text for language, text in BLOCKS if language == "yaml")
((_, HTML),) = (block for block in BLOCKS if block[0] == "html")
((_, COMMANDS),) = (block for block in BLOCKS if block[0] == "sh")
((_, ERRORS),) = (block for block in BLOCKS if block[0] == "text")
TOKEN = "c0ffee-3f8a1d"


@pytest.fixture
def workspace(manager):
    return manager.workspaces.create(name="Guide", plan="pro")


@pytest.fixture
def run(service, manager, workspace, tmp_path):
    """Return a function that runs commands of the guide in a directory with its files."""
    programs = tmp_path / "programs"
    (tmp_path / "templates").mkdir()
    programs.mkdir()
    (programs / "postrider").write_text(f'#!/bin/sh\nexec {" ".join(PROGRAM)} "$@"\n')
    (programs / "postrider").chmod(0o755)
    (tmp_path / "templates/welcome.html").write_text(HTML)
    (tmp_path / "postrider.yaml").write_text(SINGLE)
    key = manager.workspaces.keys.create(workspace.id, name="CI", scope="workspace_admin").key
    environment = {
        **service.environment,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "POSTRIDER_API_KEY": key,
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
    }

    def run_commands(commands, **variables):
        return subprocess.run(
            ["bash", "-euo", "pipefail", "-c", commands],
            cwd=tmp_path,
            env={**environment, **variables},
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )

    return run_commands


def test_the_commands_apply_the_file_and_find_no_changes_afterwards(run, manager, workspace, tmp_path):
    done = run(COMMANDS)
    assert done.returncode == 0, done.stderr
    secrets = [json.loads(line) for line in (tmp_path / "secrets.jsonl").read_text().splitlines()]
    assert [set(secret) for secret in secrets] == [{"workspace", "kind", "name", "secret"}] * 2
    assert manager.workspaces.get(workspace.id).name == "Shop"
    with Postrider(secrets[1]["secret"], base_url=manager._transport._base_url) as website:
        assert [domain.name for domain in website.domains.list()] == ["mail.example.com"]
        assert website.templates.get("welcome").html_content == HTML


def test_the_output_of_a_bad_file_is_the_one_of_the_guide(run, tmp_path):
    (tmp_path / "postrider.yaml").write_text(
        SINGLE.replace("tls: required", "tls: maybe").replace("# postrider.yaml\n", "")
    )
    (tmp_path / "templates/welcome.html").write_text("<h1>\n\n{{#if name}}")
    done = run("postrider apply --yes", HOOK_TOKEN=TOKEN)
    assert (done.returncode, done.stderr) == (1, ERRORS)


def test_the_list_of_workspaces_is_applied_with_a_management_key(run, service, manager):
    key = json.loads(service.stack.manage("create_management_key", "--name", "guide", "--group", "guide"))["key"]
    command = "postrider apply --yes -f -"
    for _ in range(2):
        done = run(f"{command} <<'EOF'\n{MANY}EOF", POSTRIDER_API_KEY=key)
        assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["changes"] == []
    with Postrider(key, base_url=service.stack.url) as own:
        assert sorted((one.name, one.group) for one in own.workspaces.list()) == [("Blog", "guide"), ("Shop", "guide")]


def test_every_option_of_the_command_is_in_the_guide(bare_cli):
    shown = bare_cli.run("apply", "--help").output.partition("Global")[0]
    options = {*re.findall(r"^  (?:-\w, )?(--[a-z-]+)", shown, re.MULTILINE)} - {"--help", "--file"}
    assert options == {"--dry-run", "--init", "--yes", "--prune", "--secrets-file"}
    assert all(f"`{option}" in GUIDE for option in options)


def test_every_field_of_a_file_is_in_the_reference_of_the_guide(service):
    schemas = service.stack.call("GET", "/openapi.json").body["components"]["schemas"]
    kinds = ("Configuration", *map("Configured{}".format, ("Domain", "Template", "Stream", "Webhook", "Route", "Key")))
    fields = {field for kind in (*kinds, "Block") for field in schemas[f"{kind}Input"]["properties"]}
    rows = " ".join(line.split("|")[1] for line in GUIDE.splitlines() if line.startswith("| `"))
    assert fields - {*re.findall(r"`(\w+)`", rows)} == set()
