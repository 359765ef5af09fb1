"""The READMEs of the client libraries."""

import re
import subprocess

from tests.stack.stack import REPOSITORY

CLIENTS = REPOSITORY / "clients"
READMES = sorted(CLIENTS.glob("*/README.md"))
# A name for a registry has no slash; an archive or a path has one.
UNPUBLISHED = re.compile(
    r"(?:pip|pipx|uv|npm|pnpm|yarn) (?:install|add|tool install)[^\n|]*?[ '\"](?:n8n-nodes-)?postrider[\w.\[\]-]*"
)


def test_an_installation_runs_no_scripts_of_dependencies():
    assert len(READMES) == 4
    assert [path for path in READMES if re.search(r"npm ci(?! --ignore-scripts)", path.read_text())] == []


def test_nothing_tells_readers_to_install_a_name_that_nobody_has_registered():
    listed = subprocess.run(["git", "ls-files", "clients", "docs"], cwd=REPOSITORY, check=True, capture_output=True)
    texts = {path: (REPOSITORY / path) for path in listed.stdout.decode().split() if path.endswith((".md", ".py"))}
    assert {path: found for path, file in texts.items() if (found := UNPUBLISHED.findall(file.read_text()))} == {}


def test_the_readme_of_a_library_shows_a_batch():
    for library in ("javascript", "python"):
        assert "emails.batch(" in (CLIENTS / library / "README.md").read_text(), library
