"""Starters, sample data, versions, duplicates, usage and test emails of templates."""

import json
import re
from datetime import timedelta
from html.parser import HTMLParser

from django.utils import timezone

from console.dashboard.pages.templates.starters import STARTERS
from emails.models import Email
from emails.template_usage import MAX_COUNT, read_template_usage
from templates_app.models import Template
from templates_app.services import MAX_VERSIONS, preview_draft, update_template
from tests.conftest import mail, make_domain
from tests.console.dashboard.scenario import make_template

LIST = "/dashboard/templates/"
FORM = {
    "name": "Receipt",
    "subject": "Order {{order}}",
    "html": "<p>{{name}}</p>",
    "data": '{"name": "Ada", "order": 7}',
}
TEST = {"test_from": "test@alice.example", "test_to": "ada@example.com"}
# Elements and properties that caniemail.com lists as supported by Gmail, Outlook for Windows and Apple Mail, or whose
# absence changes only decoration (border-radius, max-width).
ELEMENTS = {"html", "head", "meta", "title", "style", "body", "div", "table", "tr", "td", "h1", "p", "a", "br"}
PROPERTIES = {
    "background-color", "border", "border-bottom", "border-color", "border-radius", "color", "display", "font-family",
    "font-size", "font-weight", "letter-spacing", "line-height", "margin", "max-height", "max-width", "overflow",
    "padding", "text-align", "text-decoration", "white-space", "word-break",
}  # fmt: skip


class Styles(HTMLParser):
    """Collects the elements, and the inline properties with the elements that have them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.properties: set[str] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.properties |= set(re.findall(r"([\w-]+):", dict(attrs).get("style") or ""))


def test_a_starter_uses_only_html_that_common_clients_show():
    for starter in STARTERS:
        rendered = preview_draft(starter.content, data=starter.sample)
        styles = Styles(rendered.html)
        assert rendered.missing == (), starter.slug
        assert styles.elements <= ELEMENTS, starter.slug
        assert styles.properties <= PROPERTIES, starter.slug
        assert len(rendered.html.encode()) < 102 * 1024, "Gmail clips longer emails."
        assert "prefers-color-scheme: dark" in rendered.html, starter.slug
        assert not re.search(r"<img|url\(|@import|https?://(?!app\.example\.com)", rendered.html), starter.slug
        assert rendered.text, starter.slug
        assert "{{" not in rendered.html + rendered.text + rendered.subject, starter.slug


def test_a_starter_fills_the_form(owner):
    page = owner.get(f"{LIST}add/?starter=receipt")
    form = page.context["form"]
    values = {name: form[name].value() for name in ("name", "subject", "html", "text", "data")}

    assert owner.post(f"{LIST}add/", values).status_code == 302
    template = Template.objects.get()
    assert (str(template), template.version.subject) == ("Receipt", "Your receipt for order {{order}}")
    assert json.loads(template.sample_data)["order"] == "A-1042"
    assert owner.get(f"{LIST}add/?starter=none").context["form"]["html"].value() is None


def test_sample_data_is_saved_with_the_template(owner):
    owner.post(f"{LIST}add/", FORM)
    template = Template.objects.get()
    owner.post(f"{LIST}{template.id}/", {**FORM, "data": '{"name": "Grace"}'})

    assert owner.get(f"{LIST}{template.id}/").context["form"]["data"].value() == '{"name": "Grace"}'
    too_long = owner.post(f"{LIST}{template.id}/", {**FORM, "data": "x" * (64 * 1024 + 1)})
    assert list(too_long.context["form"].errors) == ["data"]


def test_deeply_nested_sample_data_does_not_break_the_page(owner):
    for depth in (3_000, 20_000):
        response = owner.post(f"{LIST}add/", {**FORM, "data": '{"a":' + "[" * depth + "]" * depth + "}"})
        assert owner.get(response.url).status_code == 200, depth


def test_an_earlier_version_is_restored_as_a_new_one(owner, alice):
    template = make_template(alice.workspace, "Receipt", "First", "<p>1</p>")
    first = template.version
    update_template(template, changes={"subject": "Second"})
    path = f"{LIST}{template.id}/restore/"

    assert "Restore" in owner.get(f"{LIST}{template.id}/").content.decode()
    assert owner.post(path, {"version": first.id}).status_code == 302
    template.refresh_from_db()
    assert template.version.subject == "First"
    assert template.version_id != first.id
    assert [one.subject for one in template.versions.order_by("-created_at", "-id")] == ["First", "Second", "First"]


def test_the_newest_versions_are_kept(alice):
    template = make_template(alice.workspace, "Receipt", "First", "<p>1</p>")
    for number in range(MAX_VERSIONS):
        update_template(template, changes={"subject": f"Change {number}"})

    assert template.versions.count() == MAX_VERSIONS
    assert not template.versions.filter(subject="First").exists()


def test_a_duplicate_has_the_content_without_the_alias(owner, alice):
    owner.post(f"{LIST}add/", {**FORM, "alias": "receipt"})
    template = Template.objects.get()
    response = owner.post(f"{LIST}{template.id}/duplicate/")

    copy = Template.objects.exclude(id=template.id).get()
    assert response.url == f"{LIST}{copy.id}/"
    assert (copy.name, copy.alias, copy.version.html) == ("Receipt (copy)", None, "<p>{{name}}</p>")
    assert copy.sample_data == FORM["data"]


def test_the_use_of_a_template_is_shown(owner, api):
    owner.post(f"{LIST}add/", FORM)
    template = Template.objects.get()
    assert "No email has used this template yet." in owner.get(f"{LIST}{template.id}/").content.decode()
    for _ in range(2):
        api.post("/emails/send", mail(subject=None, html=None, templateId=template.id, templateData={"name": "Ada"}))

    assert "Emails in 30 days: 2." in owner.get(f"{LIST}{template.id}/").content.decode()
    assert owner.get(LIST).context["listing"].rows[0].usage.count == 2


def test_the_count_ends_at_its_bound_and_ignores_old_emails(api, alice):
    template = make_template(alice.workspace, "Receipt", "First", "<p>1</p>")
    api.post("/emails/send", mail(subject=None, html=None, templateId=template.id))
    email = Email.objects.get()
    copies = [Email(**{**_values(email), "id": None}) for _ in range(MAX_COUNT)]
    for copy in copies:
        copy.id = Email._meta.pk.get_default()
    Email.objects.bulk_create(copies)
    usage = read_template_usage(alice.workspace, [template.id])[template.id]
    Email.objects.update(created_at=timezone.now() - timedelta(days=31))
    later = read_template_usage(alice.workspace, [template.id])[template.id]

    assert (usage.count, usage.is_more) == (MAX_COUNT, True)
    assert (later.count, later.is_more, later.last_used_at is None) == (0, False, False)


def _values(email: Email) -> dict[str, object]:
    return {field.attname: getattr(email, field.attname) for field in Email._meta.concrete_fields}


def test_the_preview_has_the_chosen_colours(owner):
    html = "<style>@media screen and ( Prefers-Color-Scheme:dark ) { p { color: red } }</style>"
    for scheme, expected in (("dark", "min-width"), ("light", "max-width"), ("", "max-width")):
        preview = owner.post(f"{LIST}preview/", {**FORM, "html": html, "scheme": scheme}).text
        assert preview == html.replace("( Prefers-Color-Scheme:dark )", f"({expected}: 0)"), scheme


def test_a_test_email_has_the_unsaved_content(owner, alice):
    make_domain(alice.workspace, "alice.example")
    result = owner.post(f"{LIST}test/", {**FORM, **TEST}).json()

    email = Email.objects.get()
    assert result == {"message": "The test email was accepted.", "url": f"/dashboard/emails/{email.id}/"}
    assert (email.subject, email.content.html, email.to) == ("Order 7", "<p>Ada</p>", ["ada@example.com"])
    assert (email.tags, email.entrance, email.template_id) == (["test"], "dashboard", None)


def test_a_test_email_that_cannot_be_sent_explains_why(owner, alice):
    make_domain(alice.workspace, "alice.example")
    for fields, error in (
        ({"html": "{{#if a}}"}, "line 1, column 1"),
        ({"data": "{"}, "line 1, column 2"),
        ({"test_to": "nobody"}, "address"),
        ({"test_to": "a@example.com, b@example.com"}, "address"),
        ({"test_from": "test@other.example"}, "other.example"),
    ):
        assert error in owner.post(f"{LIST}test/", {**FORM, **TEST, **fields}).json()["error"], fields
    alice.workspace.suspended_at = timezone.now()
    alice.workspace.save()
    assert "suspended" in owner.post(f"{LIST}test/", {**FORM, **TEST}).json()["error"].lower()
    assert not Email.objects.exists()
