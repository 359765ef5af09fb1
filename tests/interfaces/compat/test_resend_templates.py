"""Resend's API: templates."""

import pytest

from templates_app.models import Template
from tests.conftest import make_key
from tests.interfaces.compat.conftest import Dialect
from tests.interfaces.compat.test_resend import error, mail
from tests.rows import each

pytestmark = pytest.mark.django_db

VARIABLES = [
    {"key": "PRODUCT", "type": "string", "fallback_value": 'a "thing"'},
    {"key": "PRICE", "type": "number", "fallback_value": 20},
    {"key": "NAME", "type": "string"},
]
HTML = "<p>{{{NAME}}} {{{ PRODUCT }}} {{{PRICE}}}</p>"


def create(resend: Dialect, **fields) -> str:
    response = resend.post("/templates", {"name": "Order", "html": HTML, **fields})
    assert response.status_code == 201, response.content
    assert response.json().keys() == {"object", "id"}
    return response.json()["id"]


def sent_subject(resend: Dialect, reference: str, **fields) -> str:
    response = resend.post("/emails", mail(subject=None, html=None, template={"id": reference, **fields}))
    assert response.status_code == 200, response.content
    return resend.get(f"/emails/{response.json()['id']}").json()["subject"]


def test_a_template_is_created_and_read_by_id_and_by_alias(resend):
    given = create(resend, alias="order", subject="Hi {{{NAME}}}", text="{{{NAME}}}", reply_to=["a@alice.example"])
    template = resend.get(f"/templates/{given}").json()
    assert (template["object"], template["status"], template["alias"]) == ("template", "published", "order")
    assert (template["subject"], template["html"], template["text"]) == ("Hi {{{NAME}}}", HTML, "{{{NAME}}}")
    assert template["published_at"]
    assert not template["has_unpublished_versions"]
    assert [one["key"] for one in template["variables"]] == ["NAME", "PRODUCT", "PRICE"]
    assert resend.get("/templates/order").json() == template
    assert resend.get(f"/templates/{Template.objects.get().id}").json() == template


def test_the_addresses_of_a_template_are_defaults_of_its_emails(resend):
    replies = ["a@alice.example", '"B, C" <b@alice.example>']
    given = create(resend, alias="order", subject="S", **{"from": "Shop <shop@alice.example>"}, reply_to=replies)
    found = resend.get("/templates/order").json()
    assert (found["from"], found["reply_to"]) == ("Shop <shop@alice.example>", replies)
    copy = resend.post("/templates/order/duplicate").json()["id"]
    email = {"to": "ada@example.com", "template": {"id": given, "variables": {"NAME": "x", "PRODUCT": "x", "PRICE": 1}}}
    other = {"from": "hi@alice.example", "reply_to": "c@alice.example"}
    for body, sender, reply_to in (
        (email, found["from"], replies),
        ({**email, "template": {"id": copy}}, found["from"], replies),
        ({**email, "from": other["from"]}, other["from"], replies),
        ({**email, **other}, other["from"], [other["reply_to"]]),
    ):
        for sent in (resend.post("/emails", body).json(), resend.post("/emails/batch", [body]).json()["data"][0]):
            stored = resend.get(f"/emails/{sent['id']}").json()
            assert (stored["from"], stored["reply_to"]) == (sender, reply_to)


def test_an_address_of_a_template_is_changed_and_removed(resend):
    given = create(resend, subject="S", **{"from": "shop@alice.example"}, reply_to="a@alice.example")
    resend.call("PATCH", f"/templates/{given}", {"from": "b@alice.example", "name": "Other"})
    assert resend.get(f"/templates/{given}").json()["reply_to"] == ["a@alice.example"]
    resend.call("PATCH", f"/templates/{given}", {"from": "", "reply_to": [], "variables": []})
    found = resend.get(f"/templates/{given}").json()
    assert (found["from"], found["reply_to"]) == (None, None)
    missing = resend.post("/emails", {"to": "ada@example.com", "template": {"id": given}})
    assert error(missing) == (422, "missing_required_field")
    assert error(resend.post("/templates", {"name": "T", "html": "x", "from": "nobody"})) == (
        422,
        "invalid_from_address",
    )


def test_fallback_values_are_defaults_and_other_variables_are_required(resend):
    given = create(resend, subject="{{{NAME}}}: {{PRODUCT}} for {{{PRICE}}}", variables=VARIABLES)
    variables = {"NAME": "Ada", "PRICE": 7}
    assert sent_subject(resend, given, variables=variables) == 'Ada: a "thing" for 7'
    assert sent_subject(resend, given, variables={"NAME": "Ada"}) == 'Ada: a "thing" for 20'
    missing = resend.post("/emails", mail(subject=None, html=None, template={"id": given}))
    assert error(missing) == (422, "validation_error")
    found = {one["key"]: one["fallback_value"] for one in resend.get(f"/templates/{given}").json()["variables"]}
    assert found == {"NAME": None, "PRODUCT": 'a "thing"', "PRICE": "20"}


def test_escaped_braces_and_defaults_stay_as_they_are(resend):
    html = r'<p>\{{PRODUCT}} {{PRODUCT|"mine"}} {{{PRODUCTS}}}</p>'
    given = create(resend, html=html, variables=VARIABLES)
    assert resend.get(f"/templates/{given}").json()["html"] == html


def test_a_template_is_changed_and_published_at_once(resend):
    given = create(resend, subject="Old")
    answer = {"object": "template", "id": given}
    assert resend.call("PATCH", f"/templates/{given}", {"subject": "New", "html": None}).json() == answer
    assert resend.post(f"/templates/{given}/publish").json() == answer
    assert (Template.objects.get().version.subject, Template.objects.get().version.html) == ("New", HTML)
    assert resend.call("PATCH", f"/templates/{given}", {"variables": VARIABLES}).json() == answer
    assert '{{{PRICE|"20"}}}' in Template.objects.get().version.html
    assert Template.objects.get().strict_variables


def test_a_change_keeps_the_fallback_values_of_variables_that_it_does_not_name(resend):
    given = create(resend, subject="{{{NAME}}}", variables=VARIABLES)
    new = "<h1>{{{PRODUCT}}} {{{PRICE}}} {{{NAME}}}</h1>"
    resend.call("PATCH", f"/templates/{given}", {"html": new})
    assert sent_html(resend, given, variables={"NAME": "Ada"}) == '<h1>a "thing" 20 Ada</h1>'
    changed = {"html": new, "variables": [{"key": "PRICE", "type": "number", "fallback_value": 30}]}
    resend.call("PATCH", f"/templates/{given}", changed)
    assert sent_html(resend, given, variables={"NAME": "Ada"}) == '<h1>a "thing" 30 Ada</h1>'
    resend.call(
        "PATCH", f"/templates/{given}", {"variables": [{"key": "PRICE", "type": "number", "fallback_value": 40}]}
    )
    assert sent_html(resend, given, variables={"NAME": "Ada"}) == '<h1>a "thing" 40 Ada</h1>'
    found = {one["key"]: one["fallback_value"] for one in resend.get(f"/templates/{given}").json()["variables"]}
    assert found == {"NAME": None, "PRODUCT": 'a "thing"', "PRICE": "40"}


def sent_html(resend: Dialect, reference: str, **fields) -> str:
    response = resend.post("/emails", mail(subject=None, html=None, template={"id": reference, **fields}))
    return resend.get(f"/emails/{response.json()['id']}").json()["html"]


def test_a_copy_has_the_content_and_no_alias(resend):
    given = create(resend, name="N" * 100, alias="order", subject="Hi")
    copy = resend.post(f"/templates/{given}/duplicate").json()["id"]
    template = resend.get(f"/templates/{copy}").json()
    assert (template["alias"], template["subject"], template["html"]) == (None, "Hi", HTML)
    assert template["name"] == "N" * 93 + " (copy)"


def test_templates_are_listed_without_content_and_deleted(resend):
    ids = [create(resend) for _ in range(3)][::-1]
    listed = resend.get("/templates?limit=2").json()
    assert listed["has_more"]
    assert "html" not in listed["data"][0]
    assert resend.get(f"/templates?after={listed['data'][1]['id']}").json()["data"][0]["id"] in ids
    deleted = resend.call("DELETE", f"/templates/{ids[0]}").json()
    assert deleted == {"object": "template", "id": ids[0], "deleted": True}
    assert error(resend.get(f"/templates/{ids[0]}")) == (404, "not_found")


@each(
    ("body", "expected", "message"),
    [
        ({"name": "A"}, (422, "missing_required_field"), "Missing `html` field."),
        ({"html": "A"}, (422, "missing_required_field"), "Missing `name` field."),
        ({"name": "A", "html": "{{#if"}, (422, "validation_error"), "html, line 1, column 1: "),
        ({"name": "A", "html": 7}, (422, "validation_error"), "Invalid `html` field."),
        ({"name": "A", "html": "A", "variables": [{"key": "a-b"}]}, (422, "validation_error"), "Invalid `variables`"),
        ({"name": "A", "html": "A", "variables": VARIABLES * 17}, (422, "validation_error"), "Invalid `variables`"),
        (
            {"name": "A", "html": "A", "variables": [{"key": "A", "fallback_value": "a" * 2001}]},
            (422, "validation_error"),
            "Invalid `variables`",
        ),
        (
            {"name": "A", "html": "{{A}}" * 10_000, "variables": [{"key": "A", "fallback_value": "a" * 2000}]},
            (422, "validation_error"),
            "Invalid `html` field.",
        ),
    ],
)
def test_an_invalid_template_is_refused(resend, body, expected, message):
    response = resend.post("/templates", body)
    assert error(response) == expected
    assert response.json()["message"].startswith(message)
    assert not Template.objects.exists()


def test_an_alias_in_use_is_refused(resend):
    create(resend, alias="order")
    assert error(resend.post("/templates", {"name": "B", "html": "B", "alias": "order"})) == (409, "validation_error")


def test_a_foreign_template_is_not_found(resend, bob):
    foreign = create(Dialect("resend", make_key(bob.workspace)), alias="order")
    for reference in (foreign, "order", "00000000-0000-4000-8000-000000000000", "%00"):
        for method, path in (("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/publish"), ("POST", "/duplicate")):
            response = resend.call(method, f"/templates/{reference}{path}", {"name": "Mine"})
            assert error(response) == (404, "not_found")
    assert Template.objects.get().name == "Order"
    assert resend.get("/templates").json()["data"] == []
