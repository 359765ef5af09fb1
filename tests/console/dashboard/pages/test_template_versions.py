"""Differences of template versions."""

import pytest

from console.dashboard.pages.templates.version_diff import LONG_LINE, MAX_DIFFERENT_LINES, MAX_SHOWN_LENGTH, diff_part
from templates_app.services import update_template
from tests.console.dashboard.scenario import make_template

LIST = "/dashboard/templates/"


def shown(part):
    return [f"{line.sign}{line.text}" for line in part.lines]


def numbered(count, **changed):
    return "\n".join(changed.get(f"at{number}", f"line {number}") for number in range(count))


def test_the_changes_of_the_current_version_are_shown(owner, alice):
    template = make_template(alice.workspace, "Receipt", "First", "<p>1</p>\n<p>same</p>")
    update_template(template, changes={"html": "<p>2</p>\n<p>same</p>"})
    page = owner.get(f"{LIST}{template.id}/changes/")

    (part,) = page.context["diff"].parts
    assert (part.name, shown(part)) == ("HTML", ["-<p>1</p>", "+<p>2</p>", " <p>same</p>"])
    # A minus sign, as wide as the plus.
    assert "<del>\N{MINUS SIGN} &lt;p&gt;1&lt;/p&gt;</del><ins>+ &lt;p&gt;2&lt;/p&gt;</ins>" in page.content.decode()


def test_any_two_versions_are_compared(owner, alice):
    template = make_template(alice.workspace, "Receipt", "First", "<p>1</p>")
    first = template.version_id
    second = update_template(template, changes={"subject": "Second"}).version_id
    update_template(template, changes={"subject": "Third"})
    path = f"{LIST}{template.id}/changes/"

    assert shown(owner.get(f"{path}?version={second}").context["diff"].parts[0]) == ["-First", "+Second"]
    assert shown(owner.get(f"{path}?with={first}").context["diff"].parts[0]) == ["-First", "+Third"]
    assert shown(owner.get(f"{path}?with={second}&version={first}").context["diff"].parts[0]) == ["-Second", "+First"]
    for version, other, text in (
        (second, second, "The versions have the same content."),
        (first, "", "This is the first version."),
    ):
        page = owner.get(f"{path}?version={version}&with={other}")
        assert page.context["diff"].parts == []
        assert text in page.content.decode()


def test_versions_of_other_templates_are_not_found(owner, alice, bob):
    template = make_template(alice.workspace, "Receipt", "First", "<p>1</p>")
    other = make_template(alice.workspace, "Other", "Other", "<p>2</p>")
    foreign = make_template(bob.workspace, "Foreign", "Foreign", "<p>3</p>")
    path = f"{LIST}{template.id}/changes/"

    for version in (other.version_id, foreign.version_id, "nonsense"):
        assert owner.get(f"{path}?version={version}").status_code == 404
        assert owner.get(f"{path}?with={version}").status_code == 404
        assert owner.post(f"{LIST}{template.id}/restore/", {"version": version}).status_code == 404


def test_lines_far_from_a_difference_are_skipped():
    part = diff_part("HTML", numbered(100), numbered(100, at50="changed"))

    assert shown(part) == [
        "…", " line 47", " line 48", " line 49", "-line 50", "+changed", " line 51", " line 52", " line 53", "…"
    ]  # fmt: skip


def test_differences_at_the_ends_have_nothing_to_skip():
    part = diff_part("HTML", numbered(3), numbered(3, at0="first", at2="last"))

    assert shown(part) == ["-line 0", "+first", " line 1", "-line 2", "+last"]
    assert shown(diff_part("Text", "a", "a\nb")) == [" a", "+b"]
    assert shown(diff_part("Text", "", "b")) == ["-", "+b"]


def test_html_in_one_line_is_compared_tag_by_tag():
    old = "<td>" + "</td><td>".join(f"cell number {number}" for number in range(30)) + "</td>"
    part = diff_part("HTML", old, old.replace("number 7<", "seven<"))

    assert len(old) > LONG_LINE
    assert [line for line in shown(part) if line[0] in "-+"] == ["-<td>cell number 7</td>", "+<td>cell seven</td>"]


@pytest.mark.parametrize(("lines", "is_too_large"), [(MAX_DIFFERENT_LINES, False), (MAX_DIFFERENT_LINES + 1, True)])
def test_too_many_differences_are_not_compared(lines, is_too_large):
    old = numbered(lines)
    part = diff_part("HTML", old, old.replace("line", "row"))

    assert (part.is_too_large, bool(part.lines)) == (is_too_large, not is_too_large)
    small = diff_part("HTML", numbered(lines * 2), numbered(lines * 2, at5="changed"))
    assert not small.is_too_large


def test_a_long_line_is_cut():
    part = diff_part("Text", "short", "x" * (MAX_SHOWN_LENGTH + 1))

    assert shown(part)[1] == f"+{'x' * MAX_SHOWN_LENGTH}…"
