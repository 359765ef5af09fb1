"""Results of test runs: durations, failed tests, and the proved commit."""

import subprocess
from pathlib import Path

import pytest

from tools.embedded.test_results import clean_commit, durations, failed_tests, read_cases, record_proof

RESULTS = """<?xml version="1.0"?>
<testsuites><testsuite name="pytest" tests="5" time="12.34">
<testcase classname="tests.emails.test_send" name="test_works" file="tests/emails/test_send.py" time="1.5"/>
<testcase classname="tests.emails.test_send.TestLimits" name="test_at[tests.x]" file="tests/emails/test_send.py"
 time="2"><failure message="no">no</failure></testcase>
<testcase classname="tests.api.test_keys" name="test_ends" file="tests/api/test_keys.py" time="4">
<failure message="no">no</failure></testcase>
<testcase classname="tests.api.test_keys" name="test_ends" file="tests/api/test_keys.py" time="0.25">
<error message="no">no</error></testcase>
<testcase classname="tests.api.test_keys" name="test_skipped" file="tests/api/test_keys.py" time="0">
<skipped message="no">no</skipped></testcase>
</testsuite></testsuites>
"""


def test_a_failed_test_is_named_once_as_pytest_names_it(tmp_path: Path) -> None:
    (tmp_path / "quick.xml").write_text(RESULTS)
    assert failed_tests(read_cases(tmp_path / "quick.xml")) == [
        "tests/emails/test_send.py::TestLimits::test_at[tests.x]",
        "tests/api/test_keys.py::test_ends",
    ]


def test_durations_name_each_run_and_the_slowest_files_first(tmp_path: Path) -> None:
    (tmp_path / "quick.xml").write_text(RESULTS)
    cases = [f'<testcase file="tests/test_{n}.py" name="test" time="{n}"/>' for n in range(30)]
    (tmp_path / "full.xml").write_text(f'<testsuites><testsuite time="500">{"".join(cases)}</testsuite></testsuites>')
    # A run that was killed has no results.
    files = {name: tmp_path / f"{name}.xml" for name in ("quick", "full", "alone")}
    lines = durations(files).split("\n")
    assert [line.split() for line in lines[1:4]] == [
        ["12.3", "5", "quick"],
        ["500.0", "30", "full"],
        ["0.0", "0", "alone"],
    ]
    assert [line.split() for line in lines[6:8]] == [
        ["29.0", "1", "tests/test_29.py"],
        ["28.0", "1", "tests/test_28.py"],
    ]
    assert len(lines[6:]) == 20
    (tmp_path / "full.xml").unlink()
    assert [line.split() for line in durations(files).split("\n")[6:]] == [
        ["4.2", "3", "tests/api/test_keys.py"],
        ["3.5", "2", "tests/emails/test_send.py"],
    ]


def git(*arguments: str, directory: Path) -> str:
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]
    command = ["git", "-C", str(directory), *identity, *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def test_only_a_clean_work_tree_has_a_commit(tmp_path: Path) -> None:
    git("init", "-q", directory=tmp_path)
    # Without a commit.
    assert clean_commit(tmp_path) is None
    (tmp_path / "code.py").write_text("1")
    (tmp_path / ".gitignore").write_text("var/\n")
    git("add", ".", directory=tmp_path)
    git("commit", "-q", "-m", "first", directory=tmp_path)
    commit = git("rev-parse", "HEAD", directory=tmp_path)
    assert len(commit) == 40
    assert clean_commit(tmp_path) == commit
    # An archive inside another repository, in a folder that this one ignores.
    (tmp_path / "var").mkdir()
    assert clean_commit(tmp_path / "var") is None
    assert clean_commit(tmp_path) == commit
    (tmp_path / "new.py").touch()
    assert clean_commit(tmp_path) is None
    (tmp_path / "new.py").unlink()
    (tmp_path / "code.py").write_text("2")
    assert clean_commit(tmp_path) is None


def test_without_git_there_is_no_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git("init", "-q", directory=tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert clean_commit(tmp_path) is None


OLD, NEW = "a" * 40, "b" * 40


def test_a_commit_is_proved_if_the_tree_stayed_clean_and_all_tests_passed(tmp_path: Path) -> None:
    results = tmp_path / "results"
    rows = [
        # proved before; commit before and after the run; passed; proved afterwards
        (None, NEW, NEW, True, NEW),
        (OLD, NEW, NEW, True, NEW),
        (None, NEW, NEW, False, None),
        # A failed run of another commit proves nothing about the old one.
        (OLD, NEW, NEW, False, OLD),
        (OLD, OLD, OLD, False, None),
        (OLD, None, None, True, OLD),
        (OLD, NEW, None, True, OLD),
        (OLD, OLD, NEW, True, OLD),
        (None, None, NEW, True, None),
        (OLD, OLD, NEW, False, OLD),
    ]
    for row in rows:
        proved_before, before, after, has_passed, expected = row
        file = results / "proved"
        file.unlink(missing_ok=True)
        if proved_before:
            file.write_text(f"{proved_before}\n")
        record_proof(before=before, after=after, has_passed=has_passed, results=results)
        assert (file.read_text() if file.exists() else None) == (f"{expected}\n" if expected else None), row
