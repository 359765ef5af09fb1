"""The tables of threats, faults and reasons in docs/ are complete and cite existing tests."""

import re

import pytest

from console.dashboard.texts.reasons import APPROVALS, EXPLANATIONS
from core.delivery.bounces.reasons import FailureReason
from core.lib.worker.failpoints import POINTS
from tests.stack.stack import REPOSITORY

FAULTS_PAGE = (REPOSITORY / "docs" / "faults.md").read_text(encoding="utf-8")
THREATS_PAGE = (REPOSITORY / "docs" / "security.md").read_text(encoding="utf-8")
TEST_REFERENCE = re.compile(r"`((?:tests|docs)/[\w/.-]+)(?:::(\w+))?`")
ROW_NUMBERS = re.compile(r"\b([FT])(\d+)(?: to [FT](\d+))?")


def row_numbers(text: str, letter: str) -> list[int]:
    """Return the row numbers in the first column; `F17 to F21` counts as five."""
    numbers: list[int] = []
    for line in text.splitlines():
        cell = line.split("|")[1] if line.startswith("| ") else ""
        for kind, first, last in ROW_NUMBERS.findall(cell):
            numbers += range(int(first), int(last or first) + 1) if kind == letter else ()
    return numbers


@pytest.mark.parametrize(
    ("text", "letter", "last"), [(FAULTS_PAGE, "F", 85), (THREATS_PAGE, "T", 81)], ids=["faults", "threats"]
)
def test_every_number_has_one_row(text, letter, last):
    assert sorted(row_numbers(text, letter)) == list(range(1, last + 1))


@pytest.mark.parametrize("text", [FAULTS_PAGE, THREATS_PAGE], ids=["faults", "threats"])
def test_cited_tests_exist(text):
    references = TEST_REFERENCE.findall(text)
    assert len(references) > 30
    for path, test in references:
        file = REPOSITORY / path
        assert file.exists(), path
        assert not test or f"def {test}(" in file.read_text(encoding="utf-8"), f"{path}::{test}"


def test_cited_failpoints_exist():
    for name in re.findall(r"`([a-z]+\.(?:before|after)_\w+)`", FAULTS_PAGE):
        assert name in POINTS


def test_every_reason_is_explained_in_the_dashboard_and_in_the_docs():
    _, _, table = (REPOSITORY / "docs" / "webhooks.md").read_text(encoding="utf-8").partition("## Reasons")
    documented = re.findall(r"^\| `(\w+)` \|", table.partition("\n## ")[0], re.MULTILINE)
    assert sorted(documented) == sorted([*EXPLANATIONS, *APPROVALS])
    assert set(EXPLANATIONS) >= set(FailureReason)
