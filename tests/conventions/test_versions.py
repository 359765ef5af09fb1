"""The service and all clients have one version."""

import runpy

from tests.stack.stack import REPOSITORY

version = runpy.run_path(str(REPOSITORY / "bin" / "version.py"))


def test_every_package_has_the_same_version():
    versions = version["read_versions"]()
    assert set(map(frozenset, versions.values())) == {frozenset({"1.1.0"})}, versions


def test_every_changelog_has_the_version():
    for name in ("", "clients/python/", "clients/javascript/", "clients/n8n/", "clients/zapier/"):
        assert "## 1.1.0" in (REPOSITORY / name / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_document_of_the_version_is_kept():
    versions = set().union(*version["read_versions"]().values())
    assert versions <= {path.stem for path in (REPOSITORY / "docs" / "openapi").glob("*.json")}


def test_one_command_changes_the_version_everywhere(tmp_path):
    for name in version["PLACES"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text((REPOSITORY / name).read_text(encoding="utf-8"), encoding="utf-8")
    copy = runpy.run_path(str(REPOSITORY / "bin" / "version.py"))
    copy["write_version"].__globals__["REPOSITORY"] = tmp_path
    copy["write_version"]("9.8.7")
    assert set(map(frozenset, copy["read_versions"]().values())) == {frozenset({"9.8.7"})}


def test_a_release_keeps_its_document(tmp_path):
    (tmp_path / "docs" / "openapi").mkdir(parents=True)
    (tmp_path / "docs" / "openapi.json").write_text("{}", encoding="utf-8")
    copy = runpy.run_path(str(REPOSITORY / "bin" / "version.py"))
    copy["keep_document"].__globals__["REPOSITORY"] = tmp_path
    copy["keep_document"]("9.8.7")
    assert (tmp_path / "docs" / "openapi" / "9.8.7.json").read_text(encoding="utf-8") == "{}"
