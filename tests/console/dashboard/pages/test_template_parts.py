"""Layouts and partials in the dashboard: list, editor, templates that use them, history, deletion."""

import json

import pytest

from console.dashboard.pages.templates.history import MAX_STATES
from emails.models import Email
from templates_app.content import TemplateContent
from templates_app.models import Template
from templates_app.services import create_template, update_template
from tests.conftest import Account
from tests.console.dashboard.conftest import make_email, signed_in
from tests.rows import each

pytestmark = pytest.mark.django_db

LIST = "/dashboard/templates/"
FRAME = "<html><body>{{brand}}{{{content}}}{{> footer}}</body></html>"


def make(account: Account, name: str, html: str, *, kind: str = "template", **fields) -> Template:
    content = TemplateContent("Your order" if kind == "template" else "", html, **fields)
    sample = json.dumps({"brand": "Shop", "name": "Ada"})
    return create_template(
        account.workspace,
        name=name,
        content=content,
        alias=name.lower(),
        kind=kind,
        strict_variables=False,
        sample_data=sample,
    )


@pytest.fixture
def parts(alice) -> dict[str, Template]:
    footer = make(alice, "Footer", "<i>Bye</i>", kind="partial")
    brand = make(alice, "Brand", FRAME, kind="layout")
    order = make(alice, "Order", "<p>{{name}}</p>", layout_id=brand.id)
    return {"footer": footer, "brand": brand, "order": order}


def form_of(template: Template, **fields) -> dict:
    version = template.version
    values = {"name": template.name, "alias": template.alias or "", "html": version.html, "text": version.text}
    return {"kind": template.kind, "edited": template.id, "layout": version.layout_id or ""} | values | fields


def check(owner, template: Template, **fields) -> dict:
    return owner.post(f"{LIST}check/", form_of(template, data="{}", subject="S") | fields).json()


def test_a_layout_and_a_partial_are_created(owner, alice):
    for kind, html in (("partial", "<i>Bye</i>"), ("layout", FRAME)):
        page = owner.get(f"{LIST}add/?kind={kind}")
        assert "subject" not in page.context["form"].fields
        alias = "footer" if kind == "partial" else "brand"
        response = owner.post(f"{LIST}add/", {"kind": kind, "name": kind, "alias": alias, "html": html})
        assert response.status_code == 302, response.context["form"].errors
    form = {"kind": "template", "name": "Order", "subject": "S", "html": "x"}
    owner.post(f"{LIST}add/", form | {"layout": Template.objects.get(kind="layout").id})

    order = Template.objects.get(kind="template")
    assert order.version.layout_id == Template.objects.get(alias="brand").id
    assert set(order.set.names) == {"@layout", "footer"}


def test_a_new_layout_begins_with_a_frame(owner):
    values = {name: field.value() for name, field in _fields(owner.get(f"{LIST}add/?kind=layout"))}

    assert values["html"].count("{{{content}}}") == 1
    assert values["text"].count("{{{content}}}") == 1
    response = owner.post(f"{LIST}add/", values | {"kind": "layout"})
    assert response.status_code == 302
    assert check(owner, Template.objects.get(), data=values["data"])["missing"] == []


def _fields(page):
    form = page.context["form"]
    return [(name, form[name]) for name in form.fields if form[name].value() is not None]


def test_a_starter_in_a_layout_has_no_frame_of_its_own(owner, alice, parts):
    path = f"{LIST}add/?layout={parts['brand'].id}"
    form = owner.get(f"{path}&starter=receipt").context["form"]
    assert (form["layout"].value(), "<html" in form["html"].value()) == (parts["brand"].id, False)
    assert "<html>" in owner.get(f"{LIST}add/?starter=receipt").context["form"]["html"].value()
    assert owner.get(path).context["form"]["layout"].value() == parts["brand"].id
    for wrong in ("nothing", parts["footer"].id):
        assert owner.get(f"{LIST}add/?layout={wrong}").context["form"]["layout"].value() == ""


def test_an_invalid_part_is_refused(owner, alice, parts):
    for fields, names in (
        ({"kind": "layout", "html": "no place"}, ["html"]),
        ({"kind": "partial", "html": "{{> nothing}}"}, ["html"]),
        ({"kind": "partial", "html": ""}, ["html"]),
    ):
        form = owner.post(f"{LIST}add/", {"name": "x"} | fields).context["form"]
        assert list(form.errors) == names
    # Without a kind that exists, it is a template.
    assert "subject" in owner.post(f"{LIST}add/", {"kind": "email", "name": "x", "html": "x"}).context["form"].errors


def test_the_list_shows_kinds_and_users(owner, alice, parts):
    page = owner.get(LIST)
    rows = {row.name: row for row in page.context["listing"].rows}
    assert {name: str(row.texts.label) for name, row in rows.items()} == {
        "Order": "Template", "Brand": "Layout", "Footer": "Partial",
    }  # fmt: skip
    assert {name: row.user_count for name, row in rows.items()} == {"Order": 0, "Brand": 1, "Footer": 1}
    assert page.text.count("used by 1 template<") == 2
    for kind, names, label in (
        ("layout", ["Brand"], "Create layout"),
        ("partial", ["Footer"], "Create partial"),
        ("template", ["Order"], "Create template"),
        ("other", ["Order", "Brand", "Footer"], "Create template"),
    ):
        page = owner.get(f"{LIST}?kind={kind}")
        assert [row.name for row in page.context["listing"].rows] == names
        assert label in page.text


def test_an_empty_kind_is_explained(owner):
    assert "No layouts yet" in owner.get(f"{LIST}?kind=layout").text
    assert "No partials yet" in owner.get(f"{LIST}?kind=partial").text


def test_emails_are_filtered_by_templates_that_can_be_sent(owner, alice, parts):
    make_email(alice.workspace, subject="Hello")
    for path in ("/dashboard/emails/", "/dashboard/", f"{LIST}compare/"):
        page = owner.get(path).text
        assert ("Order" in page, "Brand" in page, "Footer" in page) == (True, False, False), path


def test_the_check_has_the_layout_and_partials(owner, parts):
    result = check(owner, parts["order"], data='{"brand": "B", "name": "N"}')
    assert result["html"] == "<html><body>B<p>N</p><i>Bye</i></body></html>"
    assert check(owner, parts["order"], layout="", data='{"name": "N"}')["html"] == "<p>N</p>"
    assert check(owner, parts["brand"])["html"] == "<html><body>{{{content}}}<i>Bye</i></body></html>"
    assert check(owner, parts["brand"], html="no place")["field"] == "html"
    assert check(owner, parts["footer"], html="<i>{{name}}</i>", data='{"name": "N"}')["html"] == "<i>N</i>"


def test_a_part_is_shown_in_a_template_that_uses_it(owner, parts):
    within = {"within": parts["order"].id}
    result = check(owner, parts["footer"], html="<b>{{name}}!</b>", **within)
    assert (result["subject"], result["html"]) == (
        "Your order",
        "<html><body>Shop<p>Ada</p><b>Ada!</b></body></html>",
    )
    assert check(owner, parts["brand"], html="{{{content}}}", **within)["html"] == "<p>Ada</p>"
    preview = owner.post(f"{LIST}preview/", form_of(parts["footer"], html="<b>x</b>", **within))
    assert preview.text == "<html><body>Shop<p>Ada</p><b>x</b></body></html>"
    assert Template.objects.get(alias="footer").version.html == "<i>Bye</i>"


def test_a_part_in_a_template_has_the_shown_language(owner, alice):
    footer = make(alice, "Footer", "<i>Bye</i>", kind="partial", locales={"de": {"html": "<i>Ciao</i>"}})
    order = make(alice, "Order", "Order {{> footer}}", locale="en", locales={"de": {"html": "Bestellung {{> footer}}"}})
    texts = {"language": ["de"], "html-de": "<i>Tschüss</i>", "within": order.id}
    assert check(owner, footer, **texts, shown="de")["html"] == "Bestellung <i>Tschüss</i>"
    assert check(owner, footer, **texts)["html"] == "Order <i>Bye</i>"


def test_a_template_that_does_not_use_a_part_is_not_found(owner, alice, bob, parts):
    other = make(alice, "Other", "x")
    foreign = make(bob, "Foreign", "x")
    body = form_of(parts["footer"])
    for within in (other.id, foreign.id, parts["brand"].id, "nothing"):
        assert owner.post(f"{LIST}check/", body | {"within": within}).status_code == 404
    body |= {"within": parts["order"].id}
    assert owner.post(f"{LIST}check/", body | {"edited": foreign.id}).status_code == 404
    assert signed_in(bob.owner).post(f"{LIST}preview/", body).status_code == 404


def test_layouts_and_partials_of_other_workspaces_are_not_offered(owner, bob, parts):
    make(bob, "Hidden", "{{{content}}}", kind="layout")
    make(bob, "Secret", "x", kind="partial")
    page = owner.get(f"{LIST}{parts['order'].id}/")
    assert [label for _, label in page.context["form"]["layout"].field.choices] == ["No layout", "Brand"]
    assert page.context["partials"] == [{"before": "{{> footer}}", "label": "Footer"}]
    assert owner.get(f"{LIST}{parts['footer'].id}/").context["partials"] == []


def test_a_partial_without_an_alias_is_inserted_by_its_id(owner, alice, parts):
    update_template(parts["brand"], changes={"html": "{{{content}}}"})
    update_template(parts["footer"], changes={"alias": None})
    tag = owner.get(f"{LIST}add/").context["partials"][0]["before"]
    assert tag == f"{{{{> {parts['footer'].id}}}}}"
    assert check(owner, parts["order"], html=tag, layout="")["html"] == "<i>Bye</i>"


def test_the_page_of_a_part_lists_the_templates_that_use_it(owner, parts):
    page = owner.get(f"{LIST}{parts['footer'].id}/")
    assert [user.name for user in page.context["users"]] == ["Brand", "Order"]
    assert "Used by (2)" in page.text
    # A layout that uses it has no preview.
    assert page.text.count('data-within="') == 1
    assert page.context["samples"] == []
    assert owner.get(f"{LIST}{parts['order'].id}/").context["users"] == []


def test_a_part_in_use_is_not_deleted(owner, parts):
    path = f"{LIST}{parts['brand'].id}/delete/"
    page = owner.get(path)
    assert "It cannot be deleted as long as these use it" in page.text
    assert f"{LIST}{parts['order'].id}/" in page.text
    assert '<button class="pr-button pr-danger"' not in page.text
    messages = owner.post(path, follow=True).text
    assert "Templates that use it: 1 (Order)." in messages
    assert Template.objects.filter(alias="brand").exists()

    owner.post(f"{LIST}{parts['order'].id}/delete/")
    assert "No template uses it." in owner.get(path).text
    assert "The layout was deleted." in owner.post(path, follow=True).text
    assert not Template.objects.filter(alias="brand").exists()


def test_a_layout_cannot_be_sent_as_a_test(owner, parts):
    body = form_of(parts["brand"], test_from="test@alice.example", test_to="ada@example.com")
    assert "cannot be sent" in owner.post(f"{LIST}test/", body).json()["error"]
    assert not Email.objects.exists()


def test_the_history_has_the_changes_of_the_parts(owner, parts):
    order, path = parts["order"], f"{LIST}{parts['order'].id}/"
    update_template(parts["footer"], changes={"html": "<i>Ciao</i>"})
    update_template(order, changes={"html": "<p>Hi {{name}}</p>"})
    history = owner.get(path).context["history"]
    assert [(state.version.html, state.changed_parts) for state in history] == [
        ("<p>Hi {{name}}</p>", []),
        ("<p>{{name}}</p>", ["Partial footer"]),
        ("<p>{{name}}</p>", []),
    ]
    diffs = [owner.get(f"{path}changes/?version={state.id}").context["diff"] for state in history]
    assert [[part.name for part in diff.parts] for diff in diffs] == [["HTML"], ["Partial footer: HTML"], []]
    assert [diff.is_first for diff in diffs] == [False, False, True]
    far = owner.get(f"{path}changes/?version={history[0].id}&with={history[2].id}").context["diff"]
    assert [part.name for part in far.parts] == ["HTML", "Partial footer: HTML"]


def test_restoring_a_version_leaves_the_parts(owner, parts):
    order, path = parts["order"], f"{LIST}{parts['order'].id}/"
    first = order.version_id
    update_template(order, changes={"html": "<p>Second</p>"})
    update_template(parts["footer"], changes={"html": "<i>Ciao</i>"})
    page = owner.get(path)
    # A state with the current texts, but other parts, has nothing to restore.
    assert page.text.count('name="version"') == 1
    owner.post(f"{path}restore/", {"version": first})
    result = check(owner, Template.objects.get(alias="order"))
    assert result["html"] == "<html><body><p></p><i>Ciao</i></body></html>"


@each(
    ("changes", "names"),
    [
        ({"layout_id": None}, ["Settings", "Layout: HTML", "Partial footer: HTML"]),
        ({"locales": {"de": {"html": "x", "subject": "y"}}}, ["Subject (de)", "HTML (de)", "Settings"]),
        ({"locale": "en", "fallback": ("de",)}, ["Settings"]),
        ({"subject": "New", "text": "new"}, ["Subject", "Text"]),
    ],
)
def test_a_comparison_has_languages_and_settings(owner, parts, changes, names):
    before = Template.objects.get(alias="order")
    first = owner.get(f"{LIST}{before.id}/").context["history"][0]
    update_template(before, changes=changes)
    diff = owner.get(f"{LIST}{before.id}/changes/?with={first.id}").context["diff"]
    assert [part.name for part in diff.parts] == names


def test_the_settings_name_the_layout(owner, parts):
    update_template(parts["order"], changes={"layout_id": None})
    (settings, *_) = owner.get(f"{LIST}{parts['order'].id}/changes/").context["diff"].parts
    assert [line.sign + line.text for line in settings.lines] == ["-Layout: Brand", "+"]


def test_the_history_is_bounded(owner, alice, parts):
    for number in range(MAX_STATES):
        update_template(parts["footer"], changes={"html": f"<i>{number}</i>"})
    assert len(owner.get(f"{LIST}{parts['order'].id}/").context["history"]) == MAX_STATES
