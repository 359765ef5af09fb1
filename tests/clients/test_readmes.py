"""The READMEs of the client libraries."""

import re

import pytest

from tests.stack.stack import REPOSITORY

CLIENTS = REPOSITORY / "clients"
READMES = sorted(CLIENTS.glob("*/README.md"))
LIBRARIES = ("javascript", "python")


@pytest.mark.parametrize("readme", READMES, ids=lambda path: path.parent.name)
def test_an_installation_runs_no_scripts_of_dependencies(readme):
    assert not re.findall(r"npm ci(?! --ignore-scripts)", readme.read_text())


@pytest.mark.parametrize("library", LIBRARIES)
def test_the_readme_of_a_library_shows_a_batch(library):
    assert "emails.batch(" in (CLIENTS / library / "README.md").read_text()
