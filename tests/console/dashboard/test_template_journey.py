"""Journeys in the template editor, in Chromium."""

from datetime import UTC, datetime

import pytest
from playwright.sync_api import expect

from console.dashboard.pages.templates.starters import STARTERS
from core.counters import counters
from core.counters.counters import CounterKey
from core.counters.slices import Dimension, slice_id
from core.workspaces.models import User
from emails.models import Email, Entrance
from templates_app.models import Template
from templates_app.services import update_template
from tests.conftest import make_account, make_domain, make_key
from tests.console.dashboard.axe import page_problems, violations
from tests.console.dashboard.browser import looks_in, sign_in
from tests.console.dashboard.conftest import signed_in
from tests.console.dashboard.sample_programs import run_sample, wait_for_the_end_of_requests
from tests.console.dashboard.scenario import fill_workspace, make_template, make_template_set
from tests.interfaces.submission.fixtures import run_submission

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def account():
    account = make_account("alice")
    make_domain(account.workspace, "alice.example")
    return account


def open_starter(visit, account):
    sign_in(visit, account.owner.email)
    page = visit.go("/dashboard/templates/add/")
    page.get_by_role("link", name="Receipt", exact=True).click()
    expect(page.locator("[data-subject]")).to_have_text("Your receipt for order A-1042")
    return page


def save(page, message="The template was saved."):
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text(message)).to_be_visible()


def test_a_starter_is_previewed_saved_tested_duplicated_and_restored(visit, account):
    page = open_starter(visit, account)
    frame = page.frame_locator("iframe")
    expect(frame.get_by_role("heading", name="Thank you for your order")).to_be_visible()
    assert page.locator("iframe").bounding_box()["width"] > 375
    page.get_by_role("button", name="375 px").click()
    assert page.locator("iframe").bounding_box()["width"] == 375
    page.get_by_role("button", name="Dark").click()
    expect(frame.locator("body")).to_have_css("background-color", "rgb(17, 19, 24)")
    page.get_by_role("button", name="Light").click()
    expect(frame.locator("body")).to_have_css("background-color", "rgb(244, 245, 248)")
    page.get_by_role("button", name="Text", exact=True).click()
    expect(page.locator("[data-text]")).to_contain_text("2 x Notebook, dotted: $18.00")
    save(page)

    page.get_by_label("Subject").fill("Changed {{order}}")
    page.get_by_role("button", name="Send test").click()
    page.get_by_label("To", exact=True).fill("ada@example.com")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.locator("[data-outcome]")).to_contain_text("The test email was accepted.")
    visit.keep_screenshot("template-test")
    with page.expect_popup() as popup:
        page.get_by_role("link", name="Show it").click()
    expect(popup.value.get_by_role("heading", name="Changed A-1042").first).to_be_visible()
    popup.value.close()
    page.get_by_role("button", name="Close").click()
    assert Email.objects.get().subject == "Changed A-1042"
    save(page)

    page.get_by_role("button", name="Versions").click()
    page.get_by_role("button", name="Restore").click()
    expect(page.get_by_text("The version was restored.")).to_be_visible()
    expect(page.get_by_label("Subject")).to_have_value("Your receipt for order {{order}}")
    page.get_by_role("button", name="Duplicate").click()
    expect(page.get_by_label("Name")).to_have_value("Receipt (copy)")
    assert Template.objects.count() == 2
    assert not visit.complaints


def test_the_tools_insert_a_variable_format_and_save_in_full_screen(visit, account):
    page = open_starter(visit, account)
    page.get_by_role("button", name="Full screen").click()
    expect(page.get_by_role("link", name="Domains")).to_be_hidden()
    box = page.locator("[data-editor]").bounding_box()
    assert (box["x"], box["y"], box["width"]) == (0, 0, page.viewport_size["width"])
    tools = page.locator("[data-tools]").bounding_box()
    assert page.locator("label[for=id_name]").bounding_box()["y"] >= tools["y"] + tools["height"]
    visit.keep_screenshot("template-full-screen")
    assert violations(page) == []

    editor = page.get_by_role("textbox", name="HTML")
    editor.fill("<table><tr><td>Hi<b>{{name}}</b></td></tr></table>")
    editor.press("ControlOrMeta+End")
    page.get_by_label("Variable", exact=True).select_option(label="{{order}}")
    page.get_by_role("button", name="Insert").click()
    page.get_by_label("Variable", exact=True).select_option(
        label="{{#each items}}{{quantity}} {{title}} {{price}}{{/each}}"
    )
    page.get_by_role("button", name="Insert").click()
    page.keyboard.type("!")
    page.get_by_label("Subject").fill("Order ")
    page.get_by_label("Variable", exact=True).select_option(label="{{order}}")
    page.get_by_role("button", name="Insert").click()
    expect(page.get_by_label("Subject")).to_have_value("Order {{order}}")
    expect(page.locator("[data-saved]")).to_have_text("Unsaved changes")
    page.get_by_role("button", name="Format HTML").click()
    page.keyboard.press("ControlOrMeta+s")

    expect(page.locator("[data-saved]")).to_have_text("Saved")
    assert page.url.endswith(f"/{Template.objects.get().id}/")
    assert Template.objects.get().version.subject == "Order {{order}}"
    assert Template.objects.get().version.html == (
        "<table>\n  <tr>\n    <td>Hi<b>{{name}}</b></td>\n  </tr>\n</table>"
        "{{order}}{{#each items}}{{quantity}} {{title}} {{price}}!{{/each}}"
    )
    expect(page.get_by_role("button", name="Full screen")).to_have_attribute("aria-pressed", "true")
    expect(editor).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("link", name="Domains")).to_be_visible()

    page.get_by_label("Subject").fill("Unsaved")
    page.get_by_role("link", name="Domains").click()
    page.wait_for_function("true")
    assert len(visit.dialogs) == 1
    page.get_by_label("Subject").fill("Order {{order}}")
    page.get_by_role("link", name="Domains").click()
    expect(page.get_by_role("heading", name="Domains").first).to_be_visible()
    assert len(visit.dialogs) == 1
    assert not visit.complaints


def test_formatted_html_looks_the_same(visit, account):
    sign_in(visit, account.owner.email)
    for starter in STARTERS:
        page = visit.go(f"/dashboard/templates/add/?starter={starter.slug}")
        field = page.locator("textarea[name=html]")
        body = page.frame_locator("iframe").locator("body")
        expect(body).not_to_be_empty()
        source, before = field.input_value(), body.inner_text()
        with page.expect_response("**/templates/preview/"):
            page.get_by_role("button", name="Format HTML").click()
        formatted = field.input_value()
        expect(body).not_to_be_empty()

        assert formatted != source, starter.slug
        assert "".join(formatted.split()) == "".join(source.split()), starter.slug
        assert body.inner_text() == before, starter.slug
        page.get_by_role("button", name="Format HTML").click()
        assert field.input_value() == formatted, starter.slug
        page.get_by_role("textbox", name="HTML").press("ControlOrMeta+z")
        assert field.input_value() == source, starter.slug
    assert not visit.complaints


def test_an_error_is_marked_at_its_position_and_disappears(visit, account):
    page = open_starter(visit, account)
    editor = page.get_by_role("textbox", name="HTML")
    editor.fill("<p>One</p>\n<p>🙂 {{#if paid}}</p>")

    expect(page.locator("[data-status]")).to_contain_text("line 2, column 6")
    expect(page.locator(".cm-lintRange-error")).to_have_text("{{#if paid}}")
    expect(page.locator(".cm-gutters").first).to_contain_text("2")
    expect(page.locator(".pr-tag-section")).to_have_text(["{{#if paid}}", "{{#each items}}", "{{/each}}", "{{#if url}}",
                                                          "{{/if}}"])  # fmt: skip
    editor.fill("<p>One</p>\n<p>{{#if paid}}paid{{/if}}</p>")
    expect(page.locator("[data-status]")).to_have_text("No errors")
    expect(page.locator(".cm-lintRange-error")).to_have_count(0)
    editor.fill("<p>{{unknown}}</p>")
    expect(page.locator("[data-missing]")).to_contain_text("unknown")
    assert not visit.complaints


def test_a_german_and_an_english_template_share_a_layout(visit, account):
    """All that a person does who has never seen it: a layout, a template in it, a second language, a test email."""
    sign_in(visit, account.owner.email)
    page = visit.go("/dashboard/templates/")
    page.get_by_role("link", name="Create template").first.click()
    page.get_by_role("link", name="Layout", exact=True).click()
    page.get_by_label("Name").fill("Brand")
    frame = page.frame_locator("iframe")
    expect(frame.get_by_text("{{{content}}}")).to_be_visible()
    save(page, "The layout was saved.")
    page.get_by_role("button", name="Used by (0)").click()
    page.get_by_role("link", name="Create template with this layout").click()
    page.get_by_role("link", name="Receipt", exact=True).click()
    expect(frame.get_by_role("heading", name="Thank you for your order")).to_be_visible()
    expect(frame.get_by_text("Acme")).to_be_visible()

    page.get_by_role("button", name="Add language").click()
    page.get_by_label("Language tag").fill("xx-nonsense-")
    page.get_by_role("button", name="Add", exact=True).click()
    expect(page.get_by_text("This must be a language tag")).to_be_visible()
    page.get_by_label("Language tag").fill("en")
    page.keyboard.press("Enter")
    expect(page.get_by_text("This language is there already.")).to_be_visible()
    page.get_by_label("Language tag").fill("de_at")
    page.keyboard.press("Enter")
    german = page.get_by_role("group", name="de-AT", exact=True)
    expect(german.get_by_label("Subject")).to_have_value("Your receipt for order {{order}}")
    german.get_by_label("Subject").fill("Ihre Rechnung {{order}}")
    german.get_by_role("textbox", name="HTML").fill("<h1>Vielen Dank, {{name}}</h1>")
    german.get_by_role("textbox", name="Text").fill("Vielen Dank, {{name}}")
    expect(frame.get_by_role("heading", name="Vielen Dank")).to_be_visible()
    expect(frame.get_by_text("Acme")).to_be_visible()
    expect(page.locator("[data-subject]")).to_have_text("Ihre Rechnung A-1042")
    expect(page.locator("[data-saved]")).to_have_text("Unsaved changes")
    page.get_by_role("button", name="English (en)").click()
    expect(frame.get_by_role("heading", name="Thank you for your order")).to_be_visible()
    page.get_by_role("button", name="de-AT").click()
    save(page)

    # The page opens as it was left.
    expect(page.get_by_role("button", name="German (de-AT)")).to_have_attribute("aria-pressed", "true")
    expect(frame.get_by_role("heading", name="Vielen Dank")).to_be_visible()
    page.get_by_role("button", name="Send test").click()
    page.get_by_label("To", exact=True).fill("ada@example.com")
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.locator("[data-outcome]")).to_contain_text("The test email was accepted.")
    email = Email.objects.get()
    assert (email.subject, email.locale) == ("Ihre Rechnung A-1042", "de-AT")
    assert "Acme" in email.content.html
    template = Template.objects.get(kind="template")
    assert list(template.version.locales) == ["de-AT"]
    assert template.version.locales["de-AT"]["subject"] == "Ihre Rechnung {{order}}"
    assert not visit.complaints


def test_a_partial_is_inserted_and_shown_in_the_template_that_uses_it(visit, account):
    made = make_template_set(account.workspace)
    sign_in(visit, account.owner.email)
    page = visit.go(f"/dashboard/templates/{made['template'].id}/")
    frame = page.frame_locator("iframe")
    expect(frame.get_by_text("Bye")).to_be_visible()
    page.get_by_role("textbox", name="HTML").first.press("ControlOrMeta+End")
    page.get_by_label("Variable", exact=True).select_option(label="{{> footer}}: Footer")
    page.get_by_role("button", name="Insert").click()
    expect(frame.get_by_text("Bye")).to_have_count(2)
    page.get_by_role("button", name="German (de)").click()
    page.get_by_role("button", name="Insert").click()
    expect(frame.get_by_text("Tschüss")).to_have_count(2)
    expect(page.locator(".pr-tag-section:visible")).to_have_text("{{> footer}}")
    # An error in a language that is not shown is marked at its button.
    page.get_by_role("group", name="German (de)").get_by_role("textbox", name="HTML").fill("{{> nothing}}")
    page.get_by_role("button", name="English (en)").click()
    expect(page.locator("[data-wrong]")).to_have_text("German (de)")
    page.get_by_role("button", name="German (de)").click()
    expect(page.locator(".cm-lintRange-error")).to_have_text("{{> nothing}}")
    page.get_by_role("button", name="Remove language").click()
    expect(page.locator("[data-status]")).to_have_text("No errors")
    expect(page.get_by_role("button", name="German (de)")).to_have_count(0)
    save(page)
    version = Template.objects.get(kind="template").version
    assert (version.html, version.locales) == ("<h1>Hello {{name}}</h1>{{> footer}}", {})

    page = visit.go(f"/dashboard/templates/{made['partial'].id}/")
    page.get_by_role("textbox", name="HTML").first.fill("<p>See you, {{name}}</p>")
    page.get_by_role("button", name="Used by (2)").click()
    page.locator("button[data-within]").last.click()
    expect(frame.get_by_role("heading", name="Hello name")).to_be_visible()
    expect(frame.get_by_text("See you, name")).to_have_count(2)
    expect(page.locator("[data-subject]")).to_have_text("Your order order")
    page.get_by_label("Shown in").select_option(label="alone")
    expect(frame.get_by_role("heading")).to_have_count(0)
    assert Template.objects.get(kind="partial").version.html == "<p>Bye</p>"
    page.get_by_role("textbox", name="HTML").first.fill("<p>Bye</p>")
    page.get_by_role("link", name="Delete").click()
    expect(page.get_by_text("It cannot be deleted as long as these use it.")).to_be_visible()
    expect(page.get_by_role("link", name="Receipt", exact=True)).to_be_visible()
    assert not visit.complaints


@pytest.mark.parametrize(("look", "language"), looks_in("en", "de"), indirect=["look"])
def test_each_panel_of_a_layout_and_of_a_language_is_accessible(look, account, language):
    made = make_template_set(account.workspace)
    sign_in(look, account.owner.email)
    User.objects.update(language=language)
    page = look.go(f"/dashboard/templates/{made['layout'].id}/")
    page.locator(".pr-tabs button[x-on\\:click*=users]").click()
    problems = page_problems(look, f"{language}-layout-users")
    page = look.go(f"/dashboard/templates/{made['template'].id}/")
    page.locator("[data-show=de]").click()
    expect(page.frame_locator("iframe").get_by_role("heading", name="Hallo name")).to_be_visible()
    problems += page_problems(look, f"{language}-template-language")
    page.locator("[data-dialog='#language']").click()
    problems += page_problems(look, f"{language}-template-add-language")

    assert problems + look.complaints == []


def test_each_panel_of_the_editor_is_accessible(look, account):
    page = open_starter(look, account)
    save(page)
    problems = []
    for panel in ("Preview", "Text", "Data", "Code", "Versions"):
        page.get_by_role("button", name=panel, exact=True).click()
        problems += page_problems(look, f"template-{panel}")
    page.get_by_role("button", name="Send test").click()
    problems += page_problems(look, "template-test")

    assert problems + look.complaints == []


def test_the_changes_of_a_version_and_the_comparison_look_right(look, account):
    sign_in(look, account.owner.email)
    fill_workspace(account)
    slices = (slice_id(account.workspace.id, Dimension.TAG, "shop"),)
    counts = {"status.delivered": 11_940, "status.bounced": 60, "reached.delivered": 11_940, "reached.opened": 5_210}
    counters.add((CounterKey(account.workspace.id, datetime.now(UTC), key, slices), n) for key, n in counts.items())
    template = make_template(account.workspace, "Receipt", "Your order {{order}}", "<h1>Hello</h1>\n<p>{{name}}</p>")
    update_template(template, changes={"subject": "Order {{order}}", "html": "<h1>Hello!</h1>\n<p>{{name}}</p>"})
    page = look.go(f"/dashboard/templates/{template.id}/")
    page.get_by_role("button", name="Versions").click()
    page.get_by_role("link", name="Changes").first.click()
    expect(page.locator(".pr-diff ins")).to_have_text(["+ Order {{order}}", "+ <h1>Hello!</h1>"])
    assert page_problems(look, "template-changes") == []

    page.get_by_role("button", name="Restore the earlier version").click()
    expect(page.get_by_label("Subject")).to_have_value("Your order {{order}}")
    page = look.go("/dashboard/templates/")
    page.get_by_role("link", name="Compare", exact=True).click()
    page.get_by_role("link", name="Opened").click()
    expect(page.get_by_role("row", name="shop Tag")).to_contain_text("43.42%")
    expect(page.get_by_role("columnheader", name="Opened")).to_have_attribute("aria-sort", "descending")
    assert page_problems(look, "template-comparison") + look.complaints == []


def test_the_code_of_a_template_sends_it(live_server, settings, account):
    settings.PUBLIC_URL = live_server.url
    owner = signed_in(account.owner)
    form = {"name": "Receipt", "alias": "receipt", "subject": "Order {{order}}", "html": "<p>{{name}}</p>"}
    data = '{"name": "Ada \\"Countess\\" O\'Neill, $HOME €5", "order": 7, "list": [1, {"empty": ""}]}'
    owner.post("/dashboard/templates/add/", {**form, "data": data})
    key, template = make_key(account.workspace), Template.objects.get()
    with run_submission(settings):
        samples = owner.get(f"/dashboard/templates/{template.id}/").context["samples"]
        assert [sample.label for sample in samples] == ["curl", "JavaScript", "Python", "SMTP"]
        for sample in samples:
            done = run_sample(sample.label, sample.text, POSTRIDER_API_KEY=key)
            assert done.returncode == 0, (sample.label, done.stderr)
            email = Email.objects.latest("created_at")
            sent = (email.subject, email.to, email.template_id, email.entrance)
            entrance = Entrance.SMTP if sample.label == "SMTP" else Entrance.API
            assert sent == ("Order 7", ["ada@example.com"], template.id, entrance), sample.label
            assert "O'Neill, $HOME €5" in email.template_data or "O'Neill, $HOME \\u20ac5" in email.template_data
    wait_for_the_end_of_requests()
    assert Email.objects.count() == len(samples)
