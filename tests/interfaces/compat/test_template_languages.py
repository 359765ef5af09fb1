"""Templates in the languages of Postmark and SendGrid: translated when they are created, or refused by name."""

import time
from contextlib import suppress

import pytest

from core.api.errors import InvalidFields
from emails.models import Email
from emails.rendered_content import render_email
from interfaces.compat.postmark.templates.language import translate_sections
from interfaces.compat.sendgrid.template_language import translate, without_tag_lines
from tests.conftest import make_key
from tests.interfaces.compat.conftest import Dialect
from tests.interfaces.compat.test_postmark import error
from tests.interfaces.compat.test_sendgrid import mail as sendgrid_mail
from tests.rows import each

pytestmark = pytest.mark.django_db

# The examples of Postmark's documentation.
MODEL = {
    "company_name": "ACME",
    "person": {"first_name": "Andrew", "address": {"city": "Rome"}, "friends": [{"name": "Eve"}]},
    "employees": [{"name": "Wile", "tags": ["a"]}, {"name": "Road", "tags": []}],
    "tags": ["x", "y"],
    "is_new": True,
    "none": None,
    "sent": "2026-11-05T14:07:09Z",
}


def postmark_text(postmark: Dialect, source: str) -> str:
    body = postmark.post("/templates", {"Name": "T", "Alias": "t", "Subject": "S", "TextBody": source})
    assert body.status_code == 200, body.content
    message = {"From": "hi@alice.example", "To": "ada@example.com", "TemplateAlias": "t", "TemplateModel": MODEL}
    assert postmark.post("/email/withTemplate", message).json()["ErrorCode"] == 0
    return render_email(Email.objects.get()).text


@each(
    ("source", "text"),
    [
        ("{{#person}}Hello {{first_name}}{{/person}}", "Hello Andrew"),
        ("{{#person}}{{#address}}{{city}} {{../first_name}} {{../../company_name}}{{/address}}{{/person}}",
         "Rome Andrew ACME"),
        ("{{#person.address}}{{city}}{{/person.address}}", "Rome"),
        ("{{#each employees}}{{name}} of {{../company_name}}; {{/each}}", "Wile of ACME; Road of ACME; "),
        ("{{#each employees}}{{#each tags}}{{.}}{{/each}}{{^tags}}none{{/tags}}{{/each}}", "anone"),
        ("{{#each tags}}{{ . }},{{{.}}} {{/each}}", "x,x y,y "),
        ("{{#is_new}}New: {{company_name}}{{/is_new}}{{^is_new}}Old{{/is_new}}", "New: ACME"),
        ("{{^ none }}Nothing{{/ none }}{{#none}}Something{{/none}}", "Nothing"),
        ("{{# person }}{{^middle_name}}No{{/middle_name}}{{/ person }}", "No"),
        (r"\{{#person}} {{#if is_new}}yes{{/if}}", "{{#person}} yes"),
        ("{{#tags}}{{#each .}}{{.}};{{/each}}{{/tags}}", "x;y;"),
        ("{{#each employees}}{{#tags}}{{#each . }}{{ . }}{{/each}}{{/tags}}{{/each}}", "a"),
        ("{{#person}}{{#each ../tags}}{{.}}{{/each}}{{/person}}", "xy"),
        ("{{& company_name}} {{&person.first_name}} {{#each tags}}{{& . }}{{/each}}", "ACME Andrew xy"),
        ("{{#is_new}}New{{^is_new}}Old{{/is_new}} {{#none}}Some{{^none}}None{{/none}}", "New None"),
        ("{{#each employees}}{{#tags}}{{#each .}}{{/each}}some{{^tags}}none{{/tags}},{{/each}}", "some,none,"),
        ("{{#each person.friends}}{{name}}, friend of {{../../first_name}} of {{../../../company_name}}{{/each}}",
         "Eve, friend of Andrew of ACME"),
        ("{{#each employees}}{{#each tags}}{{.}} of {{../../name}} of {{../../../../company_name}}{{/each}}{{/each}}",
         "a of Wile of ACME"),
        ("{{#person.address}}{{city}} {{../first_name}} {{../../company_name}} {{& ../first_name}}{{/person.address}}",
         "Rome Andrew ACME Andrew"),
        ("{{#each employees}}{{^tags}}{{../name}} has none{{/tags}}{{/each}}", "Road has none"),
        ("{{#each employees}}{{^tags}}{{#../../is_new}}{{../person.address.city}}{{/../../is_new}}{{/tags}}{{/each}}",
         ""),
        ("{{#person}}{{#each ../tags}}{{.}}{{../../company_name}}{{/each}} {{first_name}}{{/person}}",
         "xACMEyACME Andrew"),
        ("{{^none}}{{../company_name}}{{/none}} {{../../company_name}} {{#is_new}}{{ ../company_name }}{{/is_new}}",
         "ACME ACME ACME"),
        ("{{#each tags}}{{#each ../.}}{{.}}{{/each}}{{/each}}", "xyxy"),
        ("{{#person}}{{#../person}}{{first_name}}{{/../person}}{{/person}}", "Andrew"),
    ],
)  # fmt: skip
def test_sections_of_postmark(postmark, source, text):
    assert postmark_text(postmark, source) == text


def test_an_ampersand_of_postmark_writes_html(postmark):
    body = {"Name": "T", "Alias": "t", "Subject": "S", "HtmlBody": "{{a}} {{& a}} {{{a}}}"}
    postmark.post("/templates", body)
    message = {"From": "hi@alice.example", "To": "ada@example.com", "TemplateAlias": "t", "TemplateModel": {"a": "<b>"}}
    assert postmark.post("/email/withTemplate", message).json()["ErrorCode"] == 0
    assert render_email(Email.objects.get()).html == "&lt;b&gt; <b> <b>"


def test_sections_of_postmark_in_a_bulk_request_and_in_a_validation(postmark):
    content = {"Subject": "S", "TextBody": "{{#person}}{{first_name}}{{/person}}"}
    messages = [{"To": "ada@example.com", "TemplateModel": MODEL}]
    assert (
        postmark.post("/email/bulk", {"From": "hi@alice.example", **content, "Messages": messages}).status_code == 200
    )
    assert render_email(Email.objects.get()).text == "Andrew"
    validated = postmark.post("/templates/validate", {**content, "TestRenderModel": MODEL}).json()
    assert (validated["AllContentIsValid"], validated["TextBody"]["RenderedContent"]) == (True, "Andrew")
    assert validated["SuggestedTemplateModel"] == MODEL


def test_a_validation_suggests_a_model_that_keeps_the_given_values(postmark):
    content = {
        "Subject": "{{title}}",
        "HtmlBody": "{{#each people}}{{name}}{{/each}}{{company.name}}{{company.city}}",
        "TextBody": "{{#broken}}{{name}}",
    }
    validated = postmark.post("/templates/validate", {**content, "TestRenderModel": {"company": {"name": "Acme"}}})
    assert validated.json()["AllContentIsValid"] is False
    assert validated.json()["SuggestedTemplateModel"] == {
        "title": "title_Value",
        "people": [{"name": "name_Value"}, {"name": "name_Value"}],
        "company": {"name": "Acme", "city": "city_Value"},
    }


@each(
    "source",
    [
        "{{#a}}{{/b}}",
        "{{#a}}",
        "{{/a}}",
        "{{#a}}{{#b}}{{/a}}{{/b}}",
        "{{^a}}{{/each}}",
        "{{#a}}{{#each b}}{{/a}}{{/each}}",
        "{{#each b}}{{#a}}{{/each}}",
    ],
)
def test_sections_that_do_not_match_are_a_syntax_error(postmark, source):
    body = {"Name": "T", "Subject": "S", "TextBody": source}
    assert error(postmark.post("/templates", body)) == (422, 1122)


@each(
    ("change", "code"),
    [
        ({"LayoutTemplate": "basic"}, 1101),
        ({"HtmlBody": "<b>{{{ @content }}}</b>"}, 1131),
        ({"TemplateType": "Layout", "HtmlBody": "no place"}, 1131),
        ({"TemplateType": "Layout", "HtmlBody": "{{{@content}}} {{{@content}}}"}, 1131),
        ({"TemplateType": "Other"}, 300),
    ],
)
def test_invalid_layouts_are_refused_by_name(postmark, change, code):
    refused = postmark.post("/templates", {"Name": "T", "Subject": "S", "HtmlBody": "Hi", **change})
    assert error(refused) == (422, code)


def new_layout(postmark, **fields) -> dict:
    body = {"Name": "L", "TemplateType": "Layout", "HtmlBody": "<i>{{ @content }}</i>{{{content}}}", **fields}
    created = postmark.post("/templates", body)
    assert created.status_code == 200, created.content
    return created.json()


def test_a_template_in_a_layout(postmark):
    layout = new_layout(postmark, TextBody="{{#person}}{{{@content}}}{{/person}}", Subject="ignored")
    assert layout["TemplateType"] == "Layout"
    assert layout["Alias"]
    shown = postmark.get(f"/templates/{layout['TemplateId']}").json()
    assert (shown["Subject"], shown["HtmlBody"]) == (None, "<i>{{{@content}}}</i>{{{this.content}}}")
    body = {
        "Name": "T",
        "Subject": "S",
        "HtmlBody": "{{name}}",
        "TextBody": "{{name}}",
        "LayoutTemplate": layout["Alias"],
    }
    made = postmark.post("/templates", body).json()
    assert (made["TemplateType"], made["LayoutTemplate"]) == ("Standard", layout["Alias"])
    model = {"name": "Ada", "content": "<b>", "person": {"name": "Bob"}}
    mail = {
        "From": "a@alice.example",
        "To": "ada@example.com",
        "TemplateId": made["TemplateId"],
        "TemplateModel": model,
    }
    assert postmark.post("/email/withTemplate", mail).status_code == 200
    rendered = render_email(Email.objects.get())
    assert (rendered.html, rendered.text) == ("<i>Ada</i><b>", "Bob")
    assert error(postmark.call("DELETE", f"/templates/{layout['TemplateId']}")) == (422, 1130)
    path = f"/templates/{made['TemplateId']}"
    assert (
        postmark.call("PUT", path, {"Name": "New", "LayoutTemplate": None}).json()["LayoutTemplate"] == layout["Alias"]
    )
    assert postmark.call("PUT", path, {"LayoutTemplate": ""}).json()["LayoutTemplate"] is None
    refused = postmark.call("PUT", f"/templates/{layout['TemplateId']}", {"HtmlBody": "x"})
    assert "The layout content placeholder must be present" in refused.json()["Message"]


def test_lists_of_types_and_layouts(postmark):
    layout = new_layout(postmark, Alias="frame")
    postmark.post("/templates", {"Name": "T", "Subject": "S", "HtmlBody": "x", "LayoutTemplate": "frame"})
    postmark.post("/templates", {"Name": "U", "Subject": "S", "HtmlBody": "x"})
    for query, names in (
        ("", ["U", "T", "L"]), ("&templateType=All", ["U", "T", "L"]), ("&TemplateType=Layout", ["L"]),
        ("&templatetype=Standard", ["U", "T"]), (f"&LayoutTemplate={layout['Alias']}", ["T"]),
        ("&LayoutTemplate=other", []),
    ):  # fmt: skip
        found = postmark.get(f"/templates?count=10&offset=0{query}").json()
        assert [one["Name"] for one in found["Templates"]] == names, query
        assert found["TotalCount"] == len(names)


def test_a_template_is_validated_in_its_layout(postmark):
    new_layout(postmark, Alias="frame", TextBody="")
    body = {"Subject": "S", "HtmlBody": "{{name}}", "TextBody": "x", "LayoutTemplate": "frame"}
    found = postmark.post("/templates/validate", {**body, "TestRenderModel": {"name": "Ada", "content": ""}}).json()
    assert found["HtmlBody"]["RenderedContent"] == "<i>Ada</i>"
    layout = {"TemplateType": "Layout", "HtmlBody": "{{{@content}}}!", "TextBody": "{{id}} {{{@content}}}"}
    found = postmark.post("/templates/validate", layout).json()
    assert (found["AllContentIsValid"], found["HtmlBody"]["RenderedContent"]) == (True, "{{{@content}}}!")


def test_templates_are_pushed_to_another_workspace(postmark, key, bob):
    new_layout(postmark, Alias="frame")
    postmark.post("/templates", {"Name": "T", "Alias": "t", "Subject": "S", "HtmlBody": "x", "LayoutTemplate": "frame"})
    postmark.post("/templates", {"Name": "No alias", "Subject": "S", "HtmlBody": "x"})
    other = make_key(bob.workspace)
    there = Dialect("postmark", other)
    ids = {
        "SourceServerID": postmark.get("/server").json()["ID"],
        "DestinationServerID": there.get("/server").json()["ID"],
    }
    both = {"x_postmark_server_token": "", "x_postmark_account_token": f"{key}, {other}"}

    def push(**fields):
        return postmark.call("PUT", "/templates/push", ids | fields, **both)

    assert [(one["Action"], one["Alias"]) for one in push(PerformChanges=False).json()["Templates"]] == [
        ("Create", "frame"), ("Create", "t"),
    ]  # fmt: skip
    assert there.get("/templates?count=9&offset=0").json()["TotalCount"] == 0
    assert push(PerformChanges=True).json()["TotalCount"] == 2
    assert there.get("/templates/t").json()["LayoutTemplate"] == "frame"
    assert push(PerformChanges=True).json() == {"TotalCount": 0, "Templates": []}
    postmark.call("PUT", "/templates/t", {"HtmlBody": "new"})
    assert [one["Action"] for one in push(PerformChanges=True).json()["Templates"]] == ["Edit"]
    assert there.get("/templates/t").json()["HtmlBody"] == "new"
    for fields, message in (
        ({"SourceServerID": 0, "DestinationServerID": 1}, "The source and destination servers were not found."),
        ({"DestinationServerID": 1}, "The destination server was not found."),
        ({"SourceServerID": 1}, "The source server was not found."),
    ):
        refused = push(**fields)
        assert (error(refused), refused.json()["Message"]) == ((422, 601), message)
    there.call("DELETE", "/templates/t")
    there.post("/templates", {"Name": "T", "Alias": "t", "TemplateType": "Layout", "HtmlBody": "{{{@content}}}"})
    assert error(push(PerformChanges=True)) == (422, 1125)


def test_a_key_that_only_sends_cannot_push(postmark, key, bob):
    ids = {"SourceServerID": 1, "DestinationServerID": 2}
    weak = make_key(bob.workspace, scope="sending_access")
    tokens = {"x_postmark_server_token": "", "x_postmark_account_token": f"{key},{weak}"}
    assert error(postmark.call("PUT", "/templates/push", ids, **tokens)) == (401, 10)


def sendgrid_text(sendgrid: Dialect, source: str) -> str:
    template = sendgrid.post("/v3/templates", {"name": "T", "generation": "dynamic"}).json()["id"]
    version = {"subject": "S", "plain_content": source}
    created = sendgrid.post(f"/v3/templates/{template}/versions", version)
    assert created.status_code == 201, created.content
    to = {"to": [{"email": "ada@example.com"}], "dynamic_template_data": MODEL | {"score": 7, "code": "A1"}}
    sent = sendgrid.post("/v3/mail/send", sendgrid_mail(personalizations=[to], template_id=template, content=None))
    assert sent.status_code == 202, sent.content
    return render_email(Email.objects.get()).text


@each(
    ("source", "text"),
    [
        ('{{#equals code "A1"}}yes{{else}}no{{/equals}}', "yes"),
        ("{{#notEquals code company_name}}yes{{/notEquals}}", "yes"),
        ("{{#greaterThan score 5}}high{{else}}low{{/greaterThan}}", "high"),
        ("{{#lessThan score 5}}low{{else}}high{{/lessThan}}", "high"),
        ("{{#and is_new none}}both{{else}}not both{{/and}}", "not both"),
        ("{{#or is_new none}}one{{/or}}", "one"),
        ("{{#if none}}1{{else if is_new}}2{{else}}3{{/if}}", "2"),
        ("{{#each employees}}{{this.name}} {{../company_name}} {{@root.code}};{{/each}}", "Wile ACME A1;Road ACME A1;"),
        ('{{insert person.first_name "default=Customer"}} {{ insert nobody "default=Customer" }}', "Andrew Customer"),
        ("{{insert code}}", "A1"),
        ('{{! a note (of mine) }}{{nobody|"(none at all)"}}', "(none at all)"),
        ("{{#with person}}{{first_name}}{{/with}}", "Andrew"),
        ("{{#equals code 'A1'}}yes{{else}}no{{/equals}} {{#equals code 'it\\'s'}}yes{{else}}no{{/equals}}", "yes no"),
        ("{{insert nobody 'default=a \"b\"'}} {{nobody|'there'}}", 'a "b" there'),
        ('{{insert nobody "default=it\'s"}}', "it's"),
        ("{{length employees}} {{{ length code }}} {{employees.length}}", "2 2 2"),
        ("{{#greaterThan (length employees) 1}}many{{else}}few{{/greaterThan}}", "many"),
        ("{{#if none}}{{else if (length tags)}}some{{/if}}", "some"),
        ("{{#unless (length employees.1.tags)}}none{{/unless}}", "none"),
        ("{{#equals (length employees) ( length  tags )}}same{{/equals}}", "same"),
        ("{{#each employees}}{{#equals (length this.tags) 1}}{{name}}{{/equals}}{{/each}}", "Wile"),
        ("{{#equals code '(length tags)'}}yes{{else}}no{{/equals}}", "no"),
        ("{{#each tags}}{{.}}{{{ . }}}{{length .}}{{#equals . 'x'}}!{{/equals}};{{/each}}", "xx1!;yy1;"),
        ("{{./code}} {{#each employees}}{{./name}}{{#if ./tags}}+{{/if}}{{/each}}", "A1 Wile+Road"),
        ("{{[company_name]}} {{employees.[0].name}} {{#with [person]}}{{[address].[city]}}{{/with}}", "ACME Wile Rome"),
        ("{{#equals code '[a] . ./b'}}yes{{else}}no{{/equals}}{{nobody|'[a] .'}}", "no[a] ."),
        ("a {{~code~}} b \n{{~#if is_new~}} \n c {{~else~}} d {{~/if}} e {{~{code}~}} .", "aA1bc eA1."),
        ("{{& code}} {{&person.first_name}}", "A1 Andrew"),
    ],
)  # fmt: skip
def test_helpers_of_sendgrid(sendgrid, source, text):
    assert sendgrid_text(sendgrid, source) == text


@each(
    ("source", "text"),
    [
        ("Names:\n{{#each employees}}\n- {{name}}\n{{/each}}\nBye", "Names:\n- Wile\n- Road\nBye"),
        ("{{#if is_new}}\r\n  new\r\n {{ else }} \r\n  old\r\n{{/if}}", "  new\r\n"),
        ("a\n{{#if is_new}}\n\t{{#each tags}}\n{{this}}\n\t{{/each}}\n{{/if}}", "a\nx\ny\n"),
        ("{{!-- note --}}\n{{! note }}\n{{#if is_new}} new\n{{/if}} end", " new\n end"),
        ("{{code}}\n{{#if is_new}}{{else}}\n{{/if}} {{#if code}}\nx{{/if}}\n", "A1\n \nx\n"),
    ],
)  # fmt: skip
def test_lines_with_a_tag_only_leave_no_empty_lines_in_texts_of_sendgrid(sendgrid, source, text):
    """The texts are those of Handlebars 4.7."""
    assert sendgrid_text(sendgrid, source) == text


@each(
    ("source", "text"),
    [
        ('{{formatDate sent "MMMM DD, YYYY"}}', "November 05, 2026"),
        ("{{formatDate sent 'MMM D, YY h:mm A'}}", "Nov 5, 26 2:07 PM"),
        ('{{{ formatDate sent "dddd DD/MM/YYYY HH:mm:ss" }}}', "Thursday 05/11/2026 14:07:09"),
        ('{{formatDate none "YYYY"}}', ""),
    ],
)
def test_dates_with_fixed_patterns_of_sendgrid(sendgrid, source, text):
    assert sendgrid_text(sendgrid, source) == text


@each(
    ("source", "name"),
    [
        ('\n{{formatDate timeStamp "MMMM Do, YYYY"}}', "formatDate"),
        ('\n{{formatDate timeStamp "h:mm A" "-0800"}}', "formatDate"),
        ("\n{{formatDate timeStamp pattern}}", "formatDate"),
        ('{{formatDate timeStamp "YYYY"}}\n{{formatDate timeStamp "YYYY Z"}}', "formatDate"),
        ("\n{{length employees 2}}", "length"),
        ("\n{{#greaterThan (length (lookup employees)) 2}}x{{/greaterThan}}", "lookup"),
        ("\n{{#if (upper code)}}x{{/if}}", "upper"),
    ],
)
def test_helpers_without_an_equivalent_are_refused_by_name(sendgrid, source, name):
    template = sendgrid.post("/v3/templates", {"name": "T", "generation": "dynamic"}).json()["id"]
    refused = sendgrid.post(f"/v3/templates/{template}/versions", {"subject": "S", "html_content": source})
    (entry,) = refused.json()["errors"]
    assert (refused.status_code, entry["field"]) == (400, "html_content")
    assert entry["message"].startswith(f"Line 2: {name} is not supported here. ")


@each(
    "unit",
    [
        "{{",
        "{{#",
        "{{#a}}",
        "{{^a ",
        "{{/a}}",
        "{{ ",
        "{{{ pm:unsubscribe ",
        "=",
        "{{insert a ",
        "{{#a (",
        "<% ",
        "{{length ",
        "{{#a (length ",
        "{{insert a '",
        "{{#each . ",
        "{{& ",
        "{{[a",
        "{{. ",
        " {{~ ~}} ",
        "{{ ../",
        "{{#a.b.c}}{{../d}}",
        "{{^../a}}",
        "{{../../../../../../../../../../../../../../../../../../../../x}}",
        "{{#each a}}",
        "{{#a}}{{^a}}",
        "\n{{# ",
        "\n \t",
        " {{#a}} ",
        "\n{{else ",
    ],
)
def test_a_hostile_megabyte_is_translated_in_linear_time(unit):
    source = unit * (1024 * 1024 // len(unit))
    started = time.thread_time()
    translate_sections(source)
    with suppress(InvalidFields):
        translate(source, field="html_content")
    without_tag_lines(source)
    assert time.thread_time() - started < 3
