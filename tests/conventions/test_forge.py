"""The files that a forge such as GitHub reads: each follows its schema, and its links lead to files."""

import re
import subprocess
from pathlib import Path

import yaml
from check_jsonschema import main as check_jsonschema
from click.testing import CliRunner

from tests.stack.stack import REPOSITORY

FORGE = REPOSITORY / ".github"
SCHEMAS = {
    "dependabot.yml": "vendor.dependabot",
    "workflows/audit.yaml": "vendor.github-workflows",
    "workflows/ci.yaml": "vendor.github-workflows",
    "ISSUE_TEMPLATE/config.yml": "vendor.github-issue-config",
    "ISSUE_TEMPLATE/bug_report.yml": "vendor.github-issue-forms",
    "ISSUE_TEMPLATE/feature_request.yml": "vendor.github-issue-forms",
}
# A form is at /issues/new of the repository.
LINK = re.compile(r"\(\.\./blob/main/([^)]+)\)")


def test_each_file_follows_its_schema():
    assert {str(path.relative_to(FORGE)) for path in FORGE.rglob("*.y*ml")} == set(SCHEMAS)
    for name, schema in SCHEMAS.items():
        result = CliRunner().invoke(check_jsonschema, ["--builtin-schema", schema, str(FORGE / name)])
        assert result.exit_code == 0, result.output


def test_the_links_of_the_forms_lead_to_files():
    links = {link for path in FORGE.rglob("*.yml") for link in LINK.findall(path.read_text(encoding="utf-8"))}
    assert {"SECURITY.md", "docs/README.md"} <= links
    assert [link for link in links if not (REPOSITORY / link).is_file()] == []


def test_all_packages_get_updates():
    updates = yaml.safe_load((FORGE / "dependabot.yml").read_text(encoding="utf-8"))["updates"]
    directories = {update["package-ecosystem"]: update.get("directories") for update in updates}
    command = ["git", "ls-files", "*package.json", "*pyproject.toml"]
    listed = subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True).stdout
    found = {(Path(name).name, f"/{name}".rpartition("/")[0] or "/") for name in listed.splitlines()}
    assert {folder for name, folder in found if name == "package.json"} == set(directories["npm"])
    assert {folder for name, folder in found if name == "pyproject.toml"} == set(directories["pip"])


def test_all_locked_packages_are_audited():
    jobs = yaml.safe_load((FORGE / "workflows/audit.yaml").read_text(encoding="utf-8"))["jobs"]
    command = ["git", "ls-files", "*package-lock.json"]
    listed = subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True).stdout
    folders = {name.rpartition("/")[0] for name in listed.splitlines()}
    assert folders == set(jobs["npm"]["strategy"]["matrix"]["directory"])
    assert "requirements-dev.txt" in jobs["python"]["steps"][-1]["run"]
    pinned = {name: _pinned(name) for name in ("requirements.txt", "requirements-embedded.txt", "requirements-dev.txt")}
    assert pinned["requirements.txt"] | pinned["requirements-embedded.txt"] <= pinned["requirements-dev.txt"]


def _pinned(name: str) -> set[str]:
    return set(re.findall(r"^\S+==\S+", (REPOSITORY / name).read_text(encoding="utf-8"), re.MULTILINE))
