"""The file with recipient rules that RECIPIENTS names (docs/decisions/0400)."""

import json

import pytest

from core.workspaces.recipients.caps import Cap, Exceeding, Per
from core.workspaces.recipients.rules import read_rules
from core.workspaces.recipients.rules_file import MAX_FILE_BYTES, InvalidRulesFile, read_rules_file
from tests.rows import each

CAP = {"count": 5, "seconds": 3600}
VALUES = {
    "allow": ["Ada@Example.com", "@*.staging.example.com"],
    "otherwise": "redirect",
    "redirectTo": "qa@example.com",
    "caps": [CAP, {**CAP, "per": "recipient_and_template", "exceeding": "drop"}],
}
YAML = """
allow: ["ada@example.com", "@*.staging.example.com"]
otherwise: redirect
redirectTo: qa@example.com
caps:
  - {count: 5, seconds: 3600}
  - {count: 5, seconds: 3600, per: recipient_and_template, exceeding: drop}
"""


@pytest.mark.parametrize("text", [json.dumps(VALUES), YAML], ids=["json", "yaml"])
def test_the_rules_are_those_of_the_api(tmp_path, text):
    path = tmp_path / "rules"
    path.write_text(text)
    caps = (Cap(5, 3600), Cap(5, 3600, Per.RECIPIENT_AND_TEMPLATE, Exceeding.DROP))
    expected = read_rules(
        allow=["ada@example.com", "@*.staging.example.com"],
        otherwise="redirect",
        redirect_to="qa@example.com",
        caps=caps,
    )
    assert read_rules_file(path) == expected


@each(("caps", "allow"), [([], []), ([{"count": 100, "seconds": 2_592_000}] * 3, None), ([CAP], ["a@b.example"] * 200)])
def test_each_limit_can_be_reached(tmp_path, caps, allow):
    path = tmp_path / "rules.json"
    path.write_text(json.dumps({"caps": caps} | ({} if allow is None else {"allow": allow})))
    rules = read_rules_file(path)
    assert (len(rules.caps), rules.allow is None) == (len(caps), allow is None)


@each(("text", "error"), [
    ("", "and the fields allow, otherwise, redirectTo, caps."),
    ("[]", "and the fields allow, otherwise, redirectTo, caps."),
    ("{", "is neither YAML nor JSON"),
    ("\x00", "is neither YAML nor JSON"),
    ("[" * 5000, "is neither YAML nor JSON"),
    ("{}", "allow: "),
    ('{"allow": [], "alow": []}', "'alow' is unknown"),
    ('{"allow": "@example.com"}', "allow must be a list of texts"),
    ('{"allow": null}', "allow must be a list of texts"),
    ('{"allow": [7]}', "allow must be a list of texts"),
    ('{"allow": ["nobody"]}', "allow[0]: "),
    (json.dumps({"allow": ["@a.example"] * 201}), "allow: "),
    ('{"allow": [], "otherwise": "keep"}', "otherwise must be one of redirect, capture, refuse"),
    ('{"allow": [], "otherwise": ["refuse"]}', "otherwise must be one of redirect, capture, refuse"),
    ('{"allow": [], "otherwise": "redirect"}', "redirectTo: "),
    ('{"allow": [], "redirectTo": "qa@a.example"}', "redirectTo: "),
    ('{"allow": [], "otherwise": "redirect", "redirectTo": 7}', "redirectTo must be an address"),
    ('{"allow": [], "otherwise": "redirect", "redirectTo": "qa"}', "redirectTo: "),
    ('{"caps": {"count": 5, "seconds": 60}}', "caps must be a list of objects"),
    ('{"caps": [5]}', "caps must be a list of objects"),
    (json.dumps({"caps": [CAP] * 4}), "at most 3 caps"),
    ('{"caps": [{"count": 5}]}', "caps[0]: seconds must be a whole number from 1 to 2592000"),
    (json.dumps({"caps": [CAP, {**CAP, "count": 0}]}), "caps[1]: count must be a whole number from 1 to 100"),
    (json.dumps({"caps": [{**CAP, "count": 101}]}), "caps[0]: count must be a whole number from 1 to 100"),
    (json.dumps({"caps": [{**CAP, "count": True}]}), "caps[0]: count must be a whole number from 1 to 100"),
    (json.dumps({"caps": [{**CAP, "seconds": 2_592_001}]}), "caps[0]: seconds must be"),
    (json.dumps({"caps": [{**CAP, "per": "day"}]}), "caps[0]: per must be one of recipient, recipient_and_template"),
    (json.dumps({"caps": [{**CAP, "exceeding": ""}]}), "caps[0]: exceeding must be one of refuse, drop"),
    (json.dumps({"caps": [{**CAP, "every": 1}]}), "caps[0]: 'every' is unknown"),
    (" " * (MAX_FILE_BYTES - 12) + '{"allow": []}', "must have at most 262144 bytes"),
])  # fmt: skip
def test_a_mistake_is_named(tmp_path, text, error):
    path = tmp_path / "rules.json"
    path.write_text(text)
    with pytest.raises(InvalidRulesFile) as refused:
        read_rules_file(path)
    assert str(refused.value).startswith(str(path))
    assert error in str(refused.value)


def test_a_directory_is_no_file(tmp_path):
    with pytest.raises(InvalidRulesFile, match="cannot be read: Is a directory"):
        read_rules_file(tmp_path)
