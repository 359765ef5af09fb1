"""Texts of a template in several languages, in the editor of the dashboard."""

import pytest

from emails.models import Email
from templates_app.models import Template
from tests.conftest import make_domain
from tests.rows import each

pytestmark = pytest.mark.django_db

LIST = "/dashboard/templates/"
FORM = {
    "kind": "template",
    "name": "Order",
    "alias": "order",
    "locale": "en",
    "subject": "Order {{order}}",
    "html": "<html><p>{{name}}</p></html>",
    "text": "Hello {{name}}",
    "data": '{"name": "Ada", "order": 7}',
}
GERMAN = {
    "language": ["de"],
    "subject-de": "Bestellung {{order}}",
    "html-de": "<html>\r\n<b>{{name}}</b></html>",
    "text-de": "Hallo {{name}}",
}
TEST = {"test_from": "test@alice.example", "test_to": "ada@example.com"}


def add(owner, **fields) -> Template:
    response = owner.post(f"{LIST}add/", FORM | GERMAN | fields)
    assert response.status_code == 302, response.context["form"].errors
    return Template.objects.get()


def editor(owner, template):
    return owner.get(f"{LIST}{template.id}/").context["form"]


def posted(form) -> dict:
    """Return what a browser submits of a page."""
    values = {name: form[name].value() or "" for name in form.fields}
    values |= {panel.inherits_name: "1" for panel in form.panels if panel.inherits_text}
    return {name: value for name, value in values.items() if value is not False} | {
        "kind": form.kind,
        "language": form.locales,
    }


def check(owner, **fields):
    return owner.post(f"{LIST}check/", FORM | GERMAN | fields).json()


def test_a_language_is_saved_and_shown(owner):
    template = add(owner, fallback="de-CH, fr")

    version = template.version
    assert version.locales == {
        "de": {"subject": "Bestellung {{order}}", "html": "<html>\n<b>{{name}}</b></html>", "text": "Hallo {{name}}"}
    }
    assert (version.locale, version.fallback) == ("en", ["de-CH", "fr"])
    form = editor(owner, template)
    assert [panel.label for panel in form.panels] == ["English (en)", "German (de)"]
    assert (form["subject-de"].value(), form["fallback"].value()) == ("Bestellung {{order}}", "de-CH, fr")


@each(
    "texts",
    [
        {},
        {"subject": "S"},
        {"html": "<b>x</b>"},
        {"html": "<b>x</b>", "text": ""},
        {"html": "<b>x</b>", "text": "x"},
        {"text": ""},
        {"text": "x"},
    ],
)
def test_saving_without_a_change_makes_no_version(owner, alice, texts):
    template = add(owner)
    template.version.locales = {"de-AT": texts}
    template.version.save()
    response = owner.post(f"{LIST}{template.id}/", posted(editor(owner, template)))

    assert response.status_code == 302
    if texts != {"text": ""}:
        assert Template.objects.get().version_id == template.version_id


def test_what_is_empty_is_that_of_the_default_language(owner):
    template = add(owner, **{"subject-de": "", "html-de": ""})
    assert template.version.locales == {"de": {"text": "Hallo {{name}}"}}


def test_an_empty_text_is_generated_from_the_html_of_its_language(owner):
    template = add(owner, **{"text-de": ""})
    assert template.version.locales["de"]["text"] == ""
    assert check(owner, shown="de", **{"text-de": ""})["text"] == ""


def test_a_removed_language_is_gone(owner):
    template = add(owner)
    owner.post(f"{LIST}{template.id}/", FORM)
    assert Template.objects.get().version.locales == {}


@each(
    ("fields", "names"),
    [
        ({"language": ["de_"]}, ["__all__"]),
        ({"language": ["<b>"]}, ["__all__"]),
        ({"language": ["de", "DE"], "subject-DE": "x"}, ["__all__"]),
        ({"language": [f"de-{number:03}" for number in range(51)]}, ["__all__"]),
        ({"html-de": "{{#if a}}"}, ["html-de"]),
        ({"subject-de": "x" * 999}, ["subject-de"]),
        ({"text-de": "{{> nothing}}"}, ["text-de"]),
        ({"locale": "englisch!"}, ["locale"]),
        ({"fallback": "de, !"}, ["fallback"]),
        ({"layout": "tpl_0000000000000000000000"}, ["layout"]),
    ],
)
def test_an_invalid_value_is_an_error_of_its_field(owner, fields, names):
    form = owner.post(f"{LIST}add/", FORM | GERMAN | fields).context["form"]
    assert list(form.errors) == names
    assert form.shown == ("de" if names[0].endswith("-de") else "")


def test_the_check_shows_the_chosen_language(owner):
    assert check(owner)["subject"] == "Order 7"
    german = check(owner, shown="de")
    assert (german["subject"], german["html"]) == ("Bestellung 7", '<html lang="de">\n<b>Ada</b></html>')
    assert (german["text"], german["locale"]) == ("Hallo Ada", "de")
    assert check(owner, shown="de", **{"html-de": ""})["html"] == '<html lang="de"><p>Ada</p></html>'
    preview = owner.post(f"{LIST}preview/", FORM | GERMAN | {"shown": "de"})
    assert preview.text == '<html lang="de">\n<b>Ada</b></html>'


@each(
    ("fields", "expected"),
    [
        ({"html-de": "a\n{{#if x}}"}, {"field": "html-de", "line": 2, "column": 1}),
        ({"subject-de": "{{"}, {"field": "subject-de", "line": 1}),
        ({"text-de": "{{> nothing}}"}, {"field": "text-de", "column": 1}),
        ({"layout": "tpl_0000000000000000000000"}, {"field": "layout"}),
        ({"language": ["!"], "shown": "!", "locale": "!"}, {"subject": "Order 7", "locale": None}),
    ],
)
def test_the_check_names_the_field_of_a_language(owner, fields, expected):
    result = check(owner, **fields)
    assert {name: result.get(name) for name in expected} == expected


def test_a_test_email_has_the_chosen_language(owner, alice):
    make_domain(alice.workspace, "alice.example")
    owner.post(f"{LIST}test/", FORM | GERMAN | TEST | {"shown": "de"})

    email = Email.objects.get()
    assert (email.subject, email.locale) == ("Bestellung 7", "de")


def test_a_duplicate_and_a_restored_version_have_all_languages(owner):
    template = add(owner)
    first = template.version
    owner.post(f"{LIST}{template.id}/", FORM)
    owner.post(f"{LIST}{template.id}/restore/", {"version": first.id})
    assert Template.objects.get().version.locales == first.locales
    owner.post(f"{LIST}{template.id}/duplicate/")
    assert {one.version.locales["de"]["subject"] for one in Template.objects.all()} == {"Bestellung {{order}}"}


def test_the_form_has_the_languages_of_a_refused_request(owner):
    page = owner.post(f"{LIST}add/", FORM | GERMAN | {"name": "", "shown": "de", "inherits-de": "1"})
    form = page.context["form"]
    assert (form.shown, form["subject-de"].value()) == ("de", "Bestellung {{order}}")
    assert form.panels[1].inherits_text
    assert 'name="inherits-de"' in page.text
