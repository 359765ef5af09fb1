"""Coded texts: every code that the source uses has an English and a German text, and no other has one."""

import ast
import re
from gettext import translation
from pathlib import Path

from babel.messages.pofile import read_po

from tests.rows import each

ROOT = Path(__file__).parents[2]
PLACEHOLDER = re.compile(r"%\((\w+)\)s")
# Without a word, or the same in both languages.
SAME = {
    "lib.sequence",
    "streams.pause_reason",
    "workspaces.change",
    "workspaces.tls_change",
    "workspaces.key_created",
    "workspaces.rules_set",
}
with (ROOT / "locale/en/LC_MESSAGES/django.po").open("rb") as catalogue:
    TEXTS = {text.id: text.string for text in read_po(catalogue) if text.id}
SOURCES = [
    path
    for package in sorted({path.relative_to(ROOT).parts[0] for path in ROOT.glob("[a-z]*/**/*.py")})
    if package not in {"tests", "clients", "benchmarks"}
    for path in (ROOT / package).rglob("*.py")
]
GERMAN = translation("django", ROOT / "locale", ["de"])


def calls(name: str) -> list[ast.Call]:
    trees = [ast.parse(text) for path in SOURCES if f"{name}(" in (text := path.read_text())]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    return [node for node in nodes if isinstance(node, ast.Call) and getattr(node.func, "id", "") == name]


@each("code", sorted(TEXTS))
def test_a_text_is_translated_with_the_same_values(code):
    translated = GERMAN.gettext(code)

    assert (translated != TEXTS[code]) == (code not in SAME)
    assert sorted(PLACEHOLDER.findall(translated)) == sorted(PLACEHOLDER.findall(TEXTS[code]))


def test_a_code_of_the_source_has_a_text_with_the_given_values():
    literal = [call for call in calls("CodedText") if isinstance(call.args[0], ast.Constant)]
    explicit = [call for call in literal if all(keyword.arg for keyword in call.keywords)]

    assert len(literal) > 100
    assert not {call.args[0].value for call in literal} - TEXTS.keys()
    assert not [
        call.args[0].value
        for call in explicit
        if {keyword.arg for keyword in call.keywords} != set(PLACEHOLDER.findall(TEXTS[call.args[0].value]))
    ]


def test_a_text_without_a_use_is_removed():
    source = "\n".join(path.read_text() for path in SOURCES)

    assert not [code for code in TEXTS if f'"{code}"' not in source]
