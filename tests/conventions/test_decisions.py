"""Decisions: each page is in the index, is cited where something depends on it, and cites code that exists."""

import re
import subprocess
from pathlib import Path

from tests.stack.stack import REPOSITORY

DECISIONS = "docs/decisions/"
# Pages that explain what is no longer so.
SUPERSEDED = re.compile(r"^Superseded by ", re.MULTILINE)
CODE = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"[\w.-]+(/[\w.@-]+)+/?")
# Two words with a dot may be a method of a client, or a message.
NAME = re.compile(r"[a-z_]\w*(\.\w+){2,}")
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


def code_without_place(text, files, folders):
    """Yield the paths of files and the dotted names of code in a text that lead nowhere."""
    tops = {folder for folder in folders if "/" not in folder}
    for code in CODE.findall(text):
        if PATH.fullmatch(code) and code.partition("/")[0] in tops:
            yield from [] if code.rstrip("/") in files | folders else [code]
        elif NAME.fullmatch(code) and code.partition(".")[0] in tops:
            *module, name = code.split(".")
            path = "/".join(module)
            source = next((one for one in (f"{path}.py", f"{path}/__init__.py") if one in files), None)
            has_name = source and re.search(rf"\b{name}\b", (REPOSITORY / source).read_text(encoding="utf-8"))
            yield from [] if has_name or f"{path}/{name}.py" in files else [code]


def test_the_code_that_a_page_cites_exists():
    files = set(tracked_files())
    folders = {str(parent) for file in files for parent in Path(file).parents}
    texts = {name: (REPOSITORY / name).read_text(encoding="utf-8") for name in decision_pages().values()}
    current = {name: text for name, text in texts.items() if not SUPERSEDED.search(text)}
    found = {name: [*code_without_place(text, files, folders)] for name, text in current.items()}
    assert {name: codes for name, codes in found.items() if codes} == {}
    wrong = "`core/nowhere.py` `core.lib.sql.unknown_name`"
    right = "`core/lib/sql.py` `core.lib.sql.run` `tests/core/lib/` `emails.send` `GET /v1/me`"
    assert [*code_without_place(f"{wrong} {right}", files, folders)] == ["core/nowhere.py", "core.lib.sql.unknown_name"]
