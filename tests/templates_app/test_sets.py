"""Layouts, partials and languages of templates: `/v1/templates` and the emails that are sent with them."""

import re
import time

import pytest

from emails.models import Email
from emails.sending.outgoing_messages import rebuild_message
from emails.upkeep.retention import delete_unused_versions
from templates_app.content import TemplateContent
from templates_app.models import Template, TemplateSet, TemplateVersion
from templates_app.services import preview_users, restore_version
from tests.conftest import Api, code_of, field_codes, mail
from tests.emails.api.test_attachments import received_message
from tests.rows import each

pytestmark = pytest.mark.django_db

LAYOUT = {
    "kind": "layout",
    "name": "Brand",
    "alias": "brand",
    "htmlContent": "<html><body>{{brand}}: {{{content}}}{{> footer}}</body></html>",
    "textContent": "{{{content}}}\n--\n{{> footer}}",
    "locales": {"de": {"htmlContent": "<html><body>Marke: {{{content}}}{{> footer}}</body></html>"}},
}
FOOTER = {
    "kind": "partial",
    "name": "Footer",
    "alias": "footer",
    "htmlContent": "<i>Bye</i>",
    "textContent": "Bye",
    "locales": {"de": {"htmlContent": "<i>Tschüss</i>", "textContent": "Tschüss"}},
}
ORDER = {
    "name": "Order",
    "alias": "order",
    "subject": "Order {{number}}",
    "htmlContent": "<p>Thanks, {{name}}</p>",
    "textContent": "Thanks, {{name}}",
    "locale": "en",
    "layoutId": "brand",
    "locales": {"de": {"subject": "Bestellung {{number}}", "htmlContent": "<p>Danke, {{name}}</p>"}},
}
DATA = {"name": "A&B", "number": 7, "brand": "Shop"}


def create(api: Api, fields: dict, **others) -> dict:
    response = api.post("/templates", fields | others)
    assert response.status_code == 201, response.content
    return response.json()


def partial(api: Api, alias: str, html: str, **others) -> dict:
    return create(api, {"kind": "partial", "name": alias, "alias": alias, "htmlContent": html} | others)


@pytest.fixture
def order(api: Api) -> dict:
    create(api, FOOTER)
    create(api, LAYOUT)
    return create(api, ORDER)


def preview(api: Api, template: str, **body) -> dict:
    response = api.post(f"/templates/{template}/preview", {"data": DATA} | body)
    assert response.status_code == 200, response.content
    return response.json()


def send(api: Api, **fields) -> dict:
    body = {"html": None, "subject": None, "templateId": "order", "templateData": DATA} | fields
    response = api.post("/emails/send", mail(**body))
    assert response.status_code == 202, response.content
    answer = response.json()
    return api.get(f"/emails/{answer['id']}").json() | {"warnings": answer.get("warnings", [])}


def message_of(email: dict) -> str:
    return rebuild_message(Email.objects.get(id=email["id"]).recipients.get()).decode()


class TestRendering:
    def test_a_template_has_its_layout_and_partials(self, api: Api, order):
        assert preview(api, "order") == {
            "subject": "Order 7",
            "html": '<html lang="en"><body>Shop: <p>Thanks, A&amp;B</p><i>Bye</i></body></html>',
            "text": "Thanks, A&B\n--\nBye",
            "missingVariables": [],
            "locale": "en",
        }

    @each(
        ("locale", "used", "subject", "html"),
        [
            ("de", "de", "Bestellung 7", "Marke: <p>Danke, A&amp;B</p><i>Tschüss</i>"),
            ("de-AT", "de", "Bestellung 7", "Marke: <p>Danke, A&amp;B</p><i>Tschüss</i>"),
            ("DE_at", "de", "Bestellung 7", "Marke: <p>Danke, A&amp;B</p><i>Tschüss</i>"),
            ("en-GB", "en", "Order 7", "Shop: <p>Thanks, A&amp;B</p><i>Bye</i>"),
            ("fr", "en", "Order 7", "Shop: <p>Thanks, A&amp;B</p><i>Bye</i>"),
            (None, "en", "Order 7", "Shop: <p>Thanks, A&amp;B</p><i>Bye</i>"),
        ],
    )
    def test_the_locale_selects_the_texts(self, api: Api, order, locale, used, subject, html):
        found = preview(api, "order", locale=locale)
        assert (found["locale"], found["subject"]) == (used, subject)
        assert found["html"] == f'<html lang="{used}"><body>{html}</body></html>'

    def test_the_fallback_comes_before_the_default(self, api: Api, order):
        api.patch("/templates/order", {"fallback": ["de-CH"]})
        assert [preview(api, "order", locale=locale)["locale"] for locale in ("fr", "en", None)] == ["de", "en", "en"]

    def test_what_a_locale_lacks_comes_from_the_default(self, api: Api, order):
        assert preview(api, "order", locale="de")["text"] == "Thanks, A&B\n--\nTschüss"

    @each(
        ("html", "expected"),
        [
            ("<p>x</p>", "<p>x</p>"),
            ("<html>x", '<html lang="en">x'),
            ('<HTML lang="x">', '<HTML lang="x">'),
            ("<html LANG=x>", "<html LANG=x>"),
            (
                '<!doctype html>\n<!-- <html> --><html class="a>b">',
                '<!doctype html>\n<!-- <html> --><html lang="en" class="a>b">',
            ),
            ("<!-- <html>", "<!-- <html>"),
            ("<htmlx>", "<htmlx>"),
        ],
    )
    def test_the_root_element_gets_a_language_unless_it_has_one(self, api: Api, html, expected):
        made = create(api, {"name": "x", "subject": "x", "htmlContent": html, "locale": "en"})
        assert preview(api, made["id"])["html"] == expected

    def test_partials_have_the_data_of_their_place_and_parameters(self, api: Api):
        partial(api, "line", "[{{title}}|{{name}}|{{@index}}|{{../shop}}|{{price|'none'}}]")
        partial(api, "card", "{{#each items}}{{> line title=name price=cost.eur}}{{/each}}")
        template = {"name": "x", "subject": "x", "htmlContent": "{{> card}}{{> line title='A&' price=2}}"}
        made = create(api, template)
        data = {"items": [{"name": "a", "cost": {"eur": 5}}, {"name": "b"}], "shop": "S", "price": "outer"}
        found = preview(api, made["id"], data=data)
        assert found["html"] == "[a|a|0|S|5][b|b|1|S|none][A&amp;|||S|2]"

    def test_a_parameter_without_a_value_is_missing_under_its_name(self, api: Api):
        partial(api, "line", "{{title}}")
        made = create(api, {"name": "x", "subject": "x", "htmlContent": "{{> line title=a.b}}"})
        assert preview(api, made["id"], data={"title": "outer"})["missingVariables"] == ["title"]

    def test_a_text_that_is_empty_has_no_layout(self, api: Api, order):
        api.patch("/templates/order", {"textContent": ""})
        assert preview(api, "order")["text"] == ""

    def test_a_layout_without_text_leaves_the_text_as_it_is(self, api: Api, order):
        api.patch("/templates/brand", {"textContent": ""})
        assert preview(api, "order")["text"] == "Thanks, A&B"

    def test_a_preview_of_a_layout_shows_the_place_of_the_content(self, api: Api, order):
        assert preview(api, "brand")["html"] == "<html><body>Shop: {{{content}}}<i>Bye</i></body></html>"


class TestHelpers:
    @each(
        ("source", "locale", "text"),
        [
            ("{{formatNumber n}}", "de", "1.234,5"),
            ("{{formatNumber n}}", "en", "1,234.5"),
            ("{{formatNumber n}}", "de-CH", "1\u2019234.5"),
            ("{{formatNumber n}}", None, "1,234.5"),
            ('{{formatCurrency n "EUR"}}', "de", "1.234,50\xa0€"),
            ("{{formatCurrency s code}}", "en", "$9.99"),
            ('{{formatDate d "long"}}', "de", "30. November 2026"),
            ('{{formatDate d "short"}}', "en", "11/30/26"),
            ('{{formatDate t "full"}}', "fr", "lundi 30 novembre 2026"),
            ('{{formatDate t "yyyy-MM-dd HH:mm"}}', "de", "2026-11-30 23:30"),
            ('{{formatDate s "long"}}', "de", "9.99"),
            ("{{formatNumber x}}", "de", "abc &amp;"),
            ("{{{formatNumber x}}}", "de", "abc &"),
            ("{{formatNumber none|'-'}}", "de", "-"),
            ("{{formatNumber big}}", "de", "1" + "0" * 40),
            ("{{formatNumber n}}", "xx", "1,234.5"),
            ("{{formatNumber}}", "de", "a variable"),
        ],
    )
    def test_values_have_the_form_of_the_locale(self, api: Api, source, locale, text):
        data = {
            "n": 1234.5, "s": "9.99", "code": "USD", "d": "2026-11-30", "t": "2026-11-30T23:30:00-08:00", "x": "abc &",
            "big": 10**40, "formatNumber": "a variable",
        }  # fmt: skip
        fields = {"name": "x", "subject": "x", "htmlContent": source, "locale": locale}
        found = preview(api, create(api, fields)["id"], data=data)
        assert found["html"] == text

    @each(
        "source",
        [
            '{{formatCurrency n "euro"}}',
            "{{formatCurrency n}}",
            '{{formatDate d "DD.MM.YYYY"}}',
            """{{formatDate d "d MMM '"}}""",
            "{{formatDate d}}",
            "{{formatNumber n 2}}",
            "{{formatTime t}}",
            "{{upper x y}}",
        ],
    )
    def test_other_forms_are_syntax_errors(self, api: Api, source):
        response = api.post("/templates", {"name": "x", "subject": "x", "htmlContent": f"a\n {source}"})
        assert code_of(response) == (422, "template_syntax_error")
        assert (response.json()["line"], response.json()["column"]) == (2, 2)

    def test_a_missing_value_is_reported(self, api: Api):
        made = create(api, {"name": "x", "subject": "x", "htmlContent": '{{formatDate a.b "long"}}'})
        assert preview(api, made["id"])["missingVariables"] == ["a.b"]


class TestSaving:
    @each(
        ("fields", "error", "line", "column"),
        [
            ({"htmlContent": "<p>\n {{> nothing}}"}, "htmlContent", 2, 2),
            ({"textContent": "{{> order}}"}, "textContent", 1, 1),
            ({"htmlContent": "{{> brand}}"}, "htmlContent", 1, 1),
            ({"subject": "a {{> nothing}}"}, "subject", 1, 3),
            ({"locales": {"de": {"htmlContent": "\n{{> nothing}}"}}}, "locales.de.htmlContent", 2, 1),
            ({"locales": {"de": {"subject": "{{#if"}}}, "locales.de.subject", 1, 1),
        ],
    )
    def test_an_unknown_partial_is_a_syntax_error_with_its_place(self, api: Api, order, fields, error, line, column):
        response = api.patch("/templates/order", fields)
        assert code_of(response) == (422, "template_syntax_error")
        body = response.json()
        assert (body["field"], body["line"], body["column"]) == (error, line, column)
        assert api.get("/templates/order").json() == order

    @each(
        ("html", "text", "is_valid"),
        [
            ("{{{content}}}", "", True),
            ("{{#if a}}{{{ content }}}{{/if}}", "{{{content}}}", True),
            ("x", "", False),
            ("{{content}}", "", False),
            ("{{{content}}}{{{content}}}", "", False),
            ("{{{content}}}", "x", False),
        ],
    )
    def test_a_layout_has_its_content_once(self, api: Api, html, text, is_valid):
        fields = {"kind": "layout", "name": "x", "htmlContent": html, "textContent": text}
        response = api.post("/templates", fields)
        assert response.status_code == (201 if is_valid else 422)

    @each(
        ("fields", "errors"),
        [
            ({"kind": "email"}, {"kind": "invalid_choice"}),
            ({"kind": "layout", "htmlContent": "{{{content}}}"}, {"subject": "not_allowed"}),
            ({"kind": "partial", "subject": "", "layoutId": "brand"}, {"subject": "blank"}),
            ({"locale": "de_"}, {"locale": "invalid_locale"}),
            ({"locales": {"d": {}}}, None),
            ({"locales": {"de": {"html": "x"}}}, None),
            ({"locales": {"de": {}, "DE": {}}}, {"locales": "same_locale"}),
            ({"locales": {f"de-{number:03}": {} for number in range(51)}}, {"locales": "too_many"}),
            ({"fallback": ["de"] * 11}, {"fallback": "max_length"}),
        ],
    )
    def test_invalid_fields_are_reported(self, api: Api, fields, errors):
        response = api.post("/templates", {"name": "x", "subject": "x", "htmlContent": "x"} | fields)
        assert response.status_code == 422, response.content
        if errors:
            assert field_codes(response) == errors

    def test_the_kind_never_changes(self, api: Api, order):
        assert field_codes(api.patch("/templates/order", {"kind": "layout"})) == {"kind": "unknown_field"}

    @each("layout", ["nothing", "order", "footer", "tpl_0000000000000000000000"])
    def test_an_unknown_layout_is_refused(self, api: Api, order, layout):
        response = api.patch("/templates/order", {"layoutId": layout})
        assert code_of(response) == (422, "template_not_found")
        assert response.json()["field"] == "layoutId"

    def test_another_workspaces_partial_is_unknown(self, api: Api, bobs_api: Api, order):
        response = bobs_api.post("/templates", {"name": "x", "subject": "x", "htmlContent": "{{> footer}}"})
        assert code_of(response) == (422, "template_syntax_error")
        response = bobs_api.post("/templates", {"name": "x", "subject": "x", "htmlContent": "x", "layoutId": "brand"})
        assert code_of(response) == (422, "template_not_found")

    def test_a_response_has_the_fields_and_users(self, api: Api, order):
        assert order["layoutId"] == api.get("/templates/brand").json()["id"]
        assert order["locales"] == ORDER["locales"]
        footer = api.get("/templates/footer").json()
        assert [(user["alias"], user["kind"]) for user in footer["usedBy"]] == [
            ("brand", "layout"),
            ("order", "template"),
        ]
        assert api.patch("/templates/order", {"layoutId": None, "locales": None}).json()["locales"] == {}
        assert api.get("/templates/brand").json()["usedBy"] == []

    @each("alias", ["footer", "brand"])
    def test_a_part_in_use_cannot_be_deleted(self, api: Api, order, alias):
        response = api.delete(f"/templates/{alias}")
        assert code_of(response) == (409, "template_in_use")
        assert "Order" in [user["name"] for user in response.json()["templates"]]
        api.delete("/templates/order")
        api.delete("/templates/brand")
        assert api.delete("/templates/footer").status_code == 200

    def test_the_alias_by_which_templates_name_a_partial_cannot_change(self, api: Api, order):
        assert code_of(api.patch("/templates/footer", {"alias": "other"})) == (409, "template_in_use")
        assert api.patch("/templates/brand", {"alias": "other"}).status_code == 200
        assert api.patch("/templates/footer", {"alias": "footer", "name": "Other"}).status_code == 200

    @each("kind", ["brand", "footer"])
    def test_a_layout_or_partial_cannot_be_sent(self, api: Api, order, kind):
        response = api.post("/emails/send", mail(html=None, subject="x", templateId=kind))
        assert code_of(response) == (422, "template_not_sendable")


class TestLimits:
    def test_a_partial_cannot_contain_itself(self, api: Api):
        partial(api, "a", "a")
        partial(api, "b", "{{> a}}")
        partial(api, "c", "{{> b}}")
        for alias in ("a", "b", "c"):
            response = api.patch("/templates/a", {"htmlContent": f"\n{{{{> {alias}}}}}"})
            assert code_of(response) == (422, "template_syntax_error")
            assert (response.json()["line"], response.json()["column"]) == (2, 1)
        response = api.post("/templates", {"kind": "partial", "name": "d", "alias": "d", "htmlContent": "{{> d}}"})
        assert code_of(response) == (422, "template_syntax_error")
        assert not Template.objects.filter(alias="d").exists()

    def test_partials_are_five_levels_deep_at_most(self, api: Api):
        partial(api, "p1", "x")
        for level in range(2, 6):
            partial(api, f"p{level}", f"{{{{> p{level - 1}}}}}")
        made = create(api, {"name": "x", "subject": "x", "htmlContent": "{{> p5}}"})
        assert preview(api, made["id"])["html"] == "x"
        body = {"kind": "partial", "name": "p6", "alias": "p6", "htmlContent": "{{> p5}}"}
        create(api, body)
        response = api.post("/templates", {"name": "x", "subject": "x", "htmlContent": "{{> p6}}"})
        assert code_of(response) == (422, "template_syntax_error")
        # One more level below refuses the change of the lowest partial.
        partial(api, "p0", "x")
        response = api.patch("/templates/p1", {"htmlContent": "{{> p0}}"})
        assert code_of(response) == (422, "template_syntax_error")
        assert preview(api, made["id"])["html"] == "x"

    def test_a_message_has_50_insertions_at_most(self, api: Api):
        partial(api, "a", "a")
        partial(api, "b", "{{> a}}" * 4)
        made = create(api, {"name": "x", "subject": "x", "htmlContent": "{{> b}}" * 10})
        assert preview(api, made["id"])["html"] == "a" * 40
        for html in ("{{> b}}" * 10 + "{{> a}}", "{{> a}}" * 10_000):
            assert code_of(api.patch(f"/templates/{made['id']}", {"htmlContent": html})) == (
                422,
                "template_syntax_error",
            )
        assert code_of(api.patch("/templates/b", {"htmlContent": "{{> a}}" * 5})) == (422, "template_syntax_error")

    def test_hostile_sets_are_refused_in_linear_time(self, api: Api):
        """Fifty partials that each name fifty others: 50^5 insertions."""
        names = [f"a{number}" for number in range(50)]
        for name in names:
            partial(api, name, "x")
        many = "".join(f"{{{{> {name}}}}}" for name in names)
        started = time.thread_time()
        for name in names[:5]:
            api.patch(f"/templates/{name}", {"htmlContent": many})
        response = api.post("/templates", {"name": "x", "subject": "x", "htmlContent": many + "{{> a0}}"})
        assert code_of(response) == (422, "template_syntax_error")
        assert time.thread_time() - started < 3

    def test_a_partial_in_a_loop_counts_its_steps(self, api: Api):
        partial(api, "a", "{{#each x}}{{y}}{{/each}}")
        made = create(api, {"name": "x", "subject": "x", "htmlContent": "{{#each x}}{{> a}}{{/each}}"})
        assert code_of(api.post(f"/templates/{made['id']}/preview", {"data": {"x": [{}] * 1000}})) == (
            422,
            "template_output_too_large",
        )

    def test_deep_sections_in_parts_are_refused(self, api: Api):
        html = "{{#if a}}" * 21 + "{{/if}}" * 21
        response = api.post("/templates", {"kind": "partial", "name": "x", "htmlContent": html})
        assert code_of(response) == (422, "template_syntax_error")
        for level in range(5):
            inner = f"{{{{> p{level - 1}}}}}" if level else "x"
            partial(api, f"p{level}", "{{#if a}}" * 20 + inner + "{{/if}}" * 20)
        layout = "{{#if a}}" * 20 + "{{{content}}}" + "{{/if}}" * 20
        create(api, {"kind": "layout", "name": "l", "alias": "l", "htmlContent": layout})
        template = {"name": "x", "subject": "x", "htmlContent": "{{#if a}}" * 50 + "{{> p4}}" + "{{/if}}" * 50}
        made = create(api, template, layoutId="l")
        assert preview(api, made["id"], data={"a": 1})["html"] == "x"


class TestEmails:
    def test_an_email_shows_the_language_it_asked_for_and_the_one_used(self, api: Api, order):
        email = send(api, locale="de-AT")
        assert (email["locale"], email["localeUsed"], email["subject"]) == ("de-AT", "de", "Bestellung 7")
        assert email["warnings"] == []
        assert "Tsch" in message_of(email)

    def test_the_message_arrives_in_its_language(self, api: Api, order):
        send(api, locale="de-AT")
        message = received_message()
        html, text = (message.get_body((kind,)).get_content() for kind in ("html", "plain"))
        assert "Marke: <p>Danke, A&amp;B</p><i>Tschüss</i>" in html
        assert ">Abmelden</a>" in html
        assert "Abmelden:" in text

    def test_an_unknown_language_is_a_warning(self, api: Api, order):
        email = send(api, locale="fr")
        assert (email["locale"], email["localeUsed"], email["subject"]) == ("fr", "en", "Order 7")
        (warning,) = email["warnings"]
        assert (warning["code"], warning["locale"]) == ("locale_missing", "fr")

    def test_an_email_without_a_template_keeps_its_language(self, api: Api):
        email = send(api, templateId=None, templateData=None, html="<p>Hallo</p>", subject="Hallo", locale="de")
        assert (email["locale"], email["localeUsed"], email["warnings"]) == ("de", "de", [])

    def test_an_invalid_tag_is_refused(self, api: Api, order):
        response = api.post("/emails/send", mail(html=None, subject=None, templateId="order", locale="!"))
        assert field_codes(response) == {"locale": "invalid_locale"}

    def test_a_subject_of_the_request_is_rendered_in_the_language(self, api: Api, order):
        assert send(api, locale="de", subject="{{formatNumber number}},5 {{> footer}}")["subject"] == "7,5 Tschüss"
        response = api.post("/emails/send", mail(html=None, subject="{{> order}}", templateId="order"))
        assert code_of(response) == (422, "template_syntax_error")

    def test_what_was_accepted_stays_as_it_was(self, api: Api, order):
        email = send(api, locale="de")
        before = message_of(email)
        api.patch("/templates/footer", {"htmlContent": "<i>New</i>", "locales": {}})
        api.patch("/templates/brand", {"htmlContent": "{{{content}}}", "locales": None, "textContent": ""})
        api.patch("/templates/order", {"locales": None, "layoutId": None})
        api.delete("/templates/brand")
        api.delete("/templates/footer")
        assert message_of(email) == before
        assert api.get(f"/emails/{email['id']}").json()["htmlContent"] == email["htmlContent"]
        resent = api.post(f"/emails/{email['id']}/resend", {}).json()
        assert api.get(f"/emails/{resent['id']}").json()["htmlContent"] == email["htmlContent"]
        assert send(api, locale="de")["htmlContent"] == "<p>Thanks, A&amp;B</p>"

    def test_a_batch_has_a_language_for_each_recipient(self, api: Api, order):
        locales = ["de", "en", None, "fr", "de-CH", "fr"]
        recipients = [
            {"to": f"a{index}@example.com", "templateData": DATA, **({"locale": locale} if locale else {})}
            for index, locale in enumerate(locales)
        ]
        body = {"from": "hi@alice.example", "templateId": "order", "recipients": recipients, "locale": "de"}
        answer = api.post("/emails/batch", body).json()
        emails = [api.get(f"/emails/{email_id}").json() for email_id in answer["ids"]]
        assert [email["localeUsed"] for email in emails] == ["de", "en", "de", "en", "de", "en"]
        assert [email["locale"] for email in emails] == ["de", "en", "de", "fr", "de-CH", "fr"]
        assert [email["subject"][:5] for email in emails] == ["Beste", "Order", "Beste", "Order", "Beste", "Order"]
        (warning,) = answer["warnings"]
        assert (warning["code"], warning["locale"], warning["indexes"]) == ("locale_missing", "fr", [3, 5])


class TestHistory:
    def test_a_change_of_a_part_renews_the_sets_of_its_users(self, api: Api, order):
        before = TemplateSet.objects.get(id=Template.objects.get(alias="order").set_id)
        api.patch("/templates/footer", {"name": "Only the name"})
        assert Template.objects.get(alias="order").set_id == before.id
        api.patch("/templates/footer", {"htmlContent": "<b>New</b>"})
        after = Template.objects.get(alias="order")
        before.refresh_from_db()
        assert (before.retired_at is not None, after.version_id == before.version_id) == (True, True)
        assert before.names == after.set.names
        assert "<b>New</b>" in preview(api, "order")["html"]

    def test_restoring_a_version_leaves_the_parts_as_they_are(self, api: Api, order):
        template = Template.objects.get(alias="order")
        first = template.version
        api.patch("/templates/order", {"htmlContent": "<p>Second</p>", "locales": None})
        api.patch("/templates/footer", {"htmlContent": "<b>New</b>"})
        restored = restore_version(template, first)
        assert restored.version.locales == first.locales
        html = preview(api, "order")["html"]
        assert "Thanks" in html
        assert "<b>New</b>" in html

    def test_retention_keeps_the_versions_that_emails_use(self, api: Api, order):
        email = send(api, locale="de")
        for number in range(2):
            api.patch("/templates/footer", {"htmlContent": f"<b>{number}</b>", "locales": None})
        for model in (TemplateSet, TemplateVersion):
            model.objects.exclude(retired_at=None).update(retired_at="2020-01-01T00:00:00Z")
        list(delete_unused_versions())
        assert "Tschüss" in api.get(f"/emails/{email['id']}").json()["htmlContent"]
        assert not TemplateVersion.objects.filter(html="<b>0</b>").exists()
        assert TemplateVersion.objects.filter(html="<b>1</b>").exists()
        assert re.search("<b>1</b>", preview(api, "order")["html"])

    def test_the_users_of_a_part_are_previewed_with_its_unsaved_content(self, api: Api, order):
        footer = Template.objects.get(alias="footer")
        ((user, rendered),) = preview_users(footer, TemplateContent("", "<b>{{name}}</b>", "x"))
        assert (user.alias, "<b>name</b></body>" in rendered.html) == ("order", True)
        assert "<i>Bye</i>" in preview(api, "order")["html"]
