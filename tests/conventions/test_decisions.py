"""Decisions: each page is in the index, and is cited where something depends on it."""

import re
import subprocess

from tests.stack.stack import REPOSITORY

DECISIONS = "docs/decisions/"
CITATION = re.compile(r"decisions?[/ ](\d{4})|\[(\d{4})\]")


def tracked_files():
    listed = subprocess.run(["git", "ls-files"], cwd=REPOSITORY, check=True, capture_output=True, text=True).stdout
    return [name for name in listed.splitlines() if (REPOSITORY / name).is_file()]


def decision_pages():
    """Return the file of each number."""
    names = [name for name in tracked_files() if re.match(rf"{DECISIONS}\d", name)]
    return {name.removeprefix(DECISIONS)[:4]: name for name in names}


def cited_numbers(name):
    # Pictures and archives cite nothing.
    text = (REPOSITORY / name).read_text(encoding="utf-8", errors="replace")
    return {left or right for left, right in CITATION.findall(text)}


def test_each_page_is_in_the_index_once():
    index = (REPOSITORY / DECISIONS / "README.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"^- \[(\d{4})\]", index, re.MULTILINE)) == sorted(decision_pages())


def test_each_page_is_cited_by_code_a_test_or_a_guide_or_by_such_a_page():
    pages = decision_pages()
    outside = [name for name in tracked_files() if not name.startswith((DECISIONS, "CHANGELOG"))]
    cited = set().union(*map(cited_numbers, outside))
    reached: set[str] = set()
    while cited:
        number = cited.pop()
        if number in pages and number not in reached:
            reached.add(number)
            cited |= cited_numbers(pages[number])
    assert sorted(pages.keys() - reached) == []
