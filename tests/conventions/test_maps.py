"""The maps of threats and faults in docs/ are whole, and name tests that exist; so is the table of reasons."""

import re

import pytest

from dashboard.ui.reasons import SENTENCES
from delivery.bounces.reasons import Reason
from lib.worker.failpoints import POINTS
from tests.stack.stack import REPOSITORY

FAULTS = (REPOSITORY / "docs" / "faults.md").read_text(encoding="utf-8")
THREATS = (REPOSITORY / "docs" / "security.md").read_text(encoding="utf-8")
TEST = re.compile(r"`((?:tests|docs)/[\w/.-]+)(?:::(\w+))?`")
NUMBERS = re.compile(r"\b([FT])(\d+)(?: to [FT](\d+))?")


def numbers_in(text: str, letter: str) -> list[int]:
    """Return the numbers of the rows' first cells; F17 to F21 stands for five."""
    found: list[int] = []
    for line in text.splitlines():
        cell = line.split("|")[1] if line.startswith("| ") else ""
        for kind, first, last in NUMBERS.findall(cell):
            found += range(int(first), int(last or first) + 1) if kind == letter else ()
    return found


@pytest.mark.parametrize(("text", "letter", "last"), [(FAULTS, "F", 60), (THREATS, "T", 40)], ids=["faults", "threats"])
def test_every_number_has_one_row(text, letter, last):
    assert sorted(numbers_in(text, letter)) == list(range(1, last + 1))


@pytest.mark.parametrize("text", [FAULTS, THREATS], ids=["faults", "threats"])
def test_what_is_named_is_there(text):
    named = TEST.findall(text)
    assert len(named) > 30
    for path, test in named:
        place = REPOSITORY / path
        assert place.exists(), path
        assert not test or f"def {test}(" in place.read_text(encoding="utf-8"), f"{path}::{test}"


def test_the_points_that_are_named_exist():
    for name in re.findall(r"`([a-z]+\.(?:before|after)_\w+)`", FAULTS):
        assert name in POINTS


def test_every_reason_is_told_in_the_dashboard_and_in_the_docs():
    _, _, table = (REPOSITORY / "docs" / "webhooks.md").read_text(encoding="utf-8").partition("## What `reason` says")
    told = re.findall(r"^\| `(\w+)` \|", table.partition("\n## ")[0], re.MULTILINE)
    assert sorted(told) == sorted(SENTENCES)
    assert set(SENTENCES) >= set(Reason)
