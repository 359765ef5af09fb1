"""Results of the test runs of `bin/test`, in JUnit's format (docs/testing.md)."""

import subprocess
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as ET

from tools.embedded.locations import REPOSITORY

RESULTS = REPOSITORY / "var" / "test-results"
# Its content is the commit that passed all tests.
PROVED = "proved"
SLOWEST = 20


@dataclass(frozen=True)
class TestResult:
    """A test of one run.

    node_id: its name for pytest.
    seconds: the time with its fixtures.
    """

    file: str
    node_id: str
    seconds: float
    has_failed: bool


def junit_options(file: Path) -> list[str]:
    """Return the options of pytest that write the results; only this variant of the format names the files."""
    return [f"--junitxml={file}", "-o", "junit_family=xunit1"]


def read_cases(file: Path) -> list[TestResult]:
    """Return the tests of a run, none if it ended before it could write the file."""
    if not file.exists():
        return []
    return [_case(element) for element in ET.parse(file).iter("testcase")]  # noqa: S314 - written by pytest


def _case(element: ET.Element) -> TestResult:
    file = element.get("file", "")
    module = file.removesuffix(".py").replace("/", ".")
    classes = element.get("classname", "").removeprefix(module).strip(".").split(".")
    parts = [file, *filter(None, classes), element.get("name", "")]
    has_failed = any(element.find(tag) is not None for tag in ("failure", "error"))
    return TestResult(file, "::".join(parts), float(element.get("time", 0)), has_failed)


def read_seconds(file: Path) -> float:
    """Return the duration of a run in seconds, 0 if it ended before it could write the file."""
    if not file.exists():
        return 0.0
    return sum(float(suite.get("time", 0)) for suite in ET.parse(file).iter("testsuite"))  # noqa: S314


def failed_tests(cases: Iterable[TestResult]) -> list[str]:
    """Return the node ids of the failed tests, each once: a test can fail and so can its fixtures afterwards."""
    return list(dict.fromkeys(case.node_id for case in cases if case.has_failed))


def durations(files: Mapping[str, Path]) -> str:
    """Return a table of the duration of each run and of the slowest test files.

    files: the result files by the name of the run, such as "quick" or "quick-repeated".
    """
    cases = {name: read_cases(file) for name, file in files.items()}
    lines = [f"{'seconds':>9}  {'tests':>6}  run"]
    lines += [f"{read_seconds(files[name]):9.1f}  {len(cases[name]):6}  {name}" for name in files]
    lines += ["", f"{'seconds':>9}  {'tests':>6}  slowest files"]
    return "\n".join([*lines, *_slowest_files(case for run in cases.values() for case in run)])


def _slowest_files(cases: Iterable[TestResult]) -> list[str]:
    files: dict[str, list[float]] = defaultdict(list)
    for case in cases:
        files[case.file].append(case.seconds)
    slowest = sorted(files.items(), key=lambda item: sum(item[1]), reverse=True)[:SLOWEST]
    return [f"{sum(seconds):9.1f}  {len(seconds):6}  {file}" for file, seconds in slowest]


def clean_commit(repository: Path = REPOSITORY) -> str | None:
    """Return the checked-out commit; None with uncommitted changes or untracked files, or without git."""
    # An archive unpacked below another repository is not that repository's commit.
    if not (repository / ".git").exists():
        return None
    try:
        changes = _git("status", "--porcelain", repository=repository)
        return None if changes else _git("rev-parse", "HEAD", repository=repository)
    except (FileNotFoundError, subprocess.CalledProcessError):
        return None


def _git(*arguments: str, repository: Path) -> str:
    command = ["git", "-C", str(repository), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def record_proof(*, before: str | None, after: str | None, has_passed: bool, results: Path = RESULTS) -> None:
    """Name the commit in the file `proved` if all tests passed on it; unname it if they failed on it.

    before, after: the clean commit when the run started and ended. A run of another commit changes nothing.
    """
    file = results / PROVED
    if before is None or before != after:
        return
    if has_passed:
        results.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{before}\n")
    elif file.exists() and file.read_text().strip() == before:
        file.unlink()
