import re

import pytest
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import flatten_fieldsets, label_for_field, quote
from django.contrib.auth.models import Permission
from django.core import checks
from django.utils.html import strip_tags
from django.utils.translation import override

from config.staff import StaffSite
from console.provisioning.models import ManagementKey
from console.provisioning.services import issue_management_key
from console.system_mail.models import SystemMail
from core.delivery.transports.router import TransportReport
from core.delivery.transports.transports_file import TransportRoute, Transports, TransportSpec
from core.lib.redis_client import ask_redis
from core.workspaces.account_status import lift_suspension, suspend_workspace
from core.workspaces.deletion import delete_workspace
from core.workspaces.models import ApiKey, AuditEntry, User, Workspace
from emails.sending.transport_status import drained_transports, send_reports
from events.kinds import EventKind
from events.recording import NewEvent, record_events
from streams.models import Stream
from streams.services import create_stream, pause_stream, update_stream
from templates_app.services import update_template
from tests.conftest import PASSWORD, Api, code_of, make_domain, make_key
from tests.console.dashboard.conftest import make_caught, make_email
from tests.console.dashboard.routes import staff_paths
from tests.console.dashboard.scenario import make_template_set
from tests.console.dashboard.test_assets import ICON, present_icons
from webhooks.models import WebhookSecret
from webhooks.services import create_webhook, send_test


@pytest.fixture
def rows(alice):
    make_key(alice.workspace)
    webhook, _ = create_webhook(alice.workspace, url="http://127.0.0.1:9/hook", events=["sent"])
    return {
        "workspaces/user": alice.owner,
        "workspaces/workspace": alice.workspace,
        "workspaces/membership": alice.workspace.memberships.get(),
        "workspaces/apikey": ApiKey.objects.get(),
        "domains/domain": make_domain(alice.workspace, "alice.example"),
        "templates_app/template": make_template_set(alice.workspace)["template"],
        "webhooks/webhook": webhook,
        "webhooks/webhookdelivery": send_test(webhook),
        "emails/email": make_email(alice.workspace, html="<p>Private matter</p>"),
        "inbox/caughtmail": make_caught(None, b"Subject: x\r\n\r\nSystem email"),
    }


KINDS = ["user", "workspace", "membership", "apikey"]
HOOKS = ["webhooks/webhook", "webhooks/webhookdelivery"]
PAGES = [
    *(f"workspaces/{kind}" for kind in KINDS), "domains/domain", "templates_app/template", *HOOKS, "emails/email",
    "inbox/caughtmail",
]  # fmt: skip


def test_the_pages_load(staff, rows):
    secrets = (ApiKey.objects.get().secret_hash, rows["workspaces/user"].password, "Private matter", "whsec_")
    secrets = (*secrets, "Hello {{", "Hallo {{")
    secrets = (*secrets, WebhookSecret.objects.get().sealed_secret)
    for page in PAGES:
        listed = staff.get(f"/admin/{page}/")
        detail = staff.get(f"/admin/{page}/{quote(rows[page].pk)}/change/")
        assert (listed.status_code, detail.status_code) == (200, 200), page
        assert [secret for secret in secrets if secret in listed.text + detail.text] == [], page
    for query in ("workspaces/user/?is_staff__exact=1", "workspaces/workspace/?plan__exact=free"):
        assert staff.get(f"/admin/{query}").status_code == 200

    read_only = ("workspaces/apikey", "domains/domain", "templates_app/template", "emails/email", "inbox/caughtmail")
    for page in read_only:
        pk = quote(rows[page].pk)
        statuses = {
            staff.get(f"/admin/{page}/add/").status_code,
            staff.post(f"/admin/{page}/{pk}/delete/", {"post": "yes"}).status_code,
            staff.post(f"/admin/{page}/{pk}/change/", {"name": "x"}).status_code,
        }
        assert statuses == {403}, page
    icons = {name for path in staff_paths() for name in ICON.findall(staff.get(path).text)}
    assert icons - present_icons() == set(), "Add them to console/dashboard/assets/icons.txt, and run bin/assets.py."


def test_staff_see_the_layout_languages_and_users_of_templates(staff, alice):
    made = make_template_set(alice.workspace)
    update_template(made["template"], changes={"fallback": ("de", "fr")})
    for kind, expected in (
        ("template", ["Kind Template", "Layout Brand", "Languages en, de", "Fallback de, fr", "Partials footer"]),
        ("layout", ["Kind Layout", "Used by Receipt"]),
        ("partial", ["Kind Partial", "Languages de", "Used by Brand, Receipt"]),
    ):
        page = staff.get(f"/admin/templates_app/template/{quote(made[kind].pk)}/change/").text
        text = " ".join(strip_tags(page).split())
        assert [one for one in expected if one not in text] == [], kind
        listed = staff.get(f"/admin/templates_app/template/?kind__exact={kind}").context["cl"].result_list
        assert [row.name for row in listed] == [made[kind].name]


def test_the_delete_button_has_no_model_name_in_the_wrong_place(staff, alice):
    User.objects.filter(is_staff=True).update(language="de")
    path = f"/admin/workspaces/user/{alice.owner.pk}"

    shown = staff.get(f"{path}/change/").text

    button = re.search(rf'<a href="{path}/delete/"[^>]*>(.*?)</a>', shown, re.DOTALL)
    assert button is not None
    assert strip_tags(button[1]).strip() == "Löschen"


@pytest.fixture
def _two_transports(settings):
    specs = {name: TransportSpec(name=name, kind="smtp", spf=f"include:{name}.example") for name in ("own", "relay")}
    settings.TRANSPORTS = Transports(
        specs, {"default": TransportRoute("default", (*specs,))}, {"default": ("default",)}
    )
    yield
    ask_redis(settings.REDIS_URL, lambda client: client.flushdb())


@pytest.mark.usefixtures("_two_transports")
def test_the_front_page_and_a_page_show_the_states_of_transports(staff, alice):
    domain = make_domain(alice.workspace, "shop.example")
    type(domain).objects.update(status="verified", spf_passing="include:own.example")
    send_reports([TransportReport("own", "paused", "2026-11-20T08:00:00.000Z", "<b>535 refused")])
    front = strip_tags(staff.get("/admin/").content.decode())
    assert "own: paused after failures" in " ".join(front.split())
    page = staff.get("/admin/transports/").content.decode()
    assert "&lt;b&gt;535 refused" in page
    assert "shop.example" in page


@pytest.mark.usefixtures("_two_transports")
def test_staff_drain_and_resume_a_transport(staff, owner):
    assert "No new email is sent by this transport" in staff.get("/admin/transports/relay/drain/").text
    assert drained_transports() == set()

    assert "relay gets no new email." in staff.post("/admin/transports/relay/drain/", follow=True).text
    staff.post("/admin/transports/relay/drain/")
    assert drained_transports() == {"relay"}
    assert "/admin/transports/relay/resume/" in staff.get("/admin/transports/").text

    for path in ("relay/resume/", "relay/drain/"):
        assert owner.post(f"/admin/transports/{path}").status_code == 302
        assert staff.post(f"/admin/transports/un{path}").status_code == 404
    assert drained_transports() == {"relay"}
    assert staff.get("/admin/transports/relay/resume/").status_code == 405

    assert "relay is used again." in staff.post("/admin/transports/relay/resume/", follow=True).text
    staff.post("/admin/transports/relay/resume/")
    assert drained_transports() == set()
    entries = AuditEntry.objects.filter(about="relay").order_by("created_at", "id").values_list("act", flat=True)
    assert list(entries) == ["transport_drained", "transport_resumed"]


def test_pages_of_staff_are_not_for_owners(client, alice):
    client.force_login(alice.owner)
    assert client.get("/admin/transports/").status_code == client.get("/admin/queue/").status_code == 302


def test_staff_see_the_transports_of_an_email_whatever_its_owner_sees(staff, alice):
    email = make_email(alice.workspace)
    recipient = email.recipients.get()
    for kind, details in (
        (EventKind.DEFERRED, {"transport": "own", "reason": "login_refused", "nextTransport": "relay"}),
        (EventKind.SENT, {"transport": "relay"}),
    ):
        record_events([NewEvent(kind, email.id, recipient.id, recipient.address, details)])
    page = staff.get(f"/admin/emails/email/{email.id}/change/").content.decode()
    assert "own: deferred (login_refused) → relay; relay: sent" in page


@pytest.mark.usefixtures("_two_transports")
def test_staff_change_the_route_of_a_stream(staff, alice):
    stream = create_stream(alice.workspace, slug="news", name="News")
    path = f"/admin/streams/stream/{quote(stream.pk)}/change/"
    assert 'name="transport_route"' in staff.get(path).content.decode()
    staff.post(path, {"transport_route": "default", "reason": ""})
    stream.refresh_from_db()
    assert stream.transport_route == "default"


def test_the_front_page_leads_to_every_model(staff, settings):
    settings.CANARY_MINUTES = 15
    page = staff.get("/admin/").text

    for model in admin.site._registry:
        assert f'href="/admin/{model._meta.app_label}/{model._meta.model_name}/"' in page, model
    # Every model has a section and an icon; "More" lists models without one.
    assert "More" not in page
    assert "Postrider staff" in page
    assert isinstance(admin.site._wrapped, StaffSite)
    assert "dashboard/copy" in staff.get("/admin/security/").text


def test_the_sidebar_hides_models_without_view_permission(client, helper):
    client.force_login(helper)

    page = client.get("/admin/").text

    assert "Operations" in page
    assert "/admin/workspaces/" not in page


def test_staff_without_permission_have_no_access(client, helper):
    client.force_login(helper)
    for path in ("emails/email/?q=ada", "workspaces/auditentry/export/", "provisioning/managementkey/", "queue/"):
        assert client.get(f"/admin/{path}").status_code == 403, path
    for path in ("provisioning/managementkey/add/", "queue/pause/"):
        assert client.post(f"/admin/{path}", {"name": "Platform", "group": ""}).status_code == 403, path
    assert not AuditEntry.objects.exists()


def test_viewing_an_email_as_staff_adds_an_audit_entry(staff, alice):
    email = make_email(alice.workspace)
    staff.get("/admin/emails/email/")
    assert not AuditEntry.objects.filter(act="email_looked_at").exists(), "a list does not show an email"
    staff.get(f"/admin/emails/email/{email.id}/change/")
    entry = AuditEntry.objects.get(act="email_looked_at")
    assert (entry.workspace, entry.about, entry.actor_kind) == (alice.workspace, email.id, "staff")


def test_captured_email_of_a_workspace_is_hidden_from_staff(staff, alice):
    mail = make_caught(alice.workspace, subject="Between us")

    assert "Between us" not in staff.get("/admin/inbox/caughtmail/").content.decode()
    assert staff.get(f"/admin/inbox/caughtmail/{quote(mail.id)}/change/").status_code == 302


def test_a_deleted_workspace_is_shown_and_restored(staff, alice):
    delete_workspace(alice.workspace)
    row = (
        staff.get("/admin/workspaces/workspace/")
        .content.decode()
        .partition(alice.workspace.id)[2]
        .partition("</tr>")[0]
    )
    assert "Being deleted" in strip_tags(row)
    fields = {"action": "restore", "_selected_action": alice.workspace.id}
    assert staff.post("/admin/workspaces/workspace/", fields).status_code == 302
    assert not Workspace.objects.get(id=alice.workspace.id).is_deleted
    entry = AuditEntry.objects.get(act="workspace_restored")
    assert (entry.actor_kind, entry.about) == ("staff", "alice")
    assert SystemMail.objects.filter(subject="alice was restored", recipient=alice.owner.email).exists()


class TestManagementKeys:
    PAGE = "/admin/provisioning/managementkey/"

    def create(self, staff, **fields: str):
        return staff.post(f"{self.PAGE}add/", {"name": "Platform", "group": "", **fields})

    def test_the_secret_is_shown_once_works_and_is_revoked(self, staff):
        response = self.create(staff, group="resold")
        (secret,) = set(re.findall(r"pra_\w{40,}", response.content.decode()))
        assert "no-store" in response["Cache-Control"]
        created = Api(secret).post("/admin/workspaces", {"name": "Shop"}).json()
        assert created["group"] == "resold"
        key = ManagementKey.objects.get()
        for page in (self.PAGE, f"{self.PAGE}{quote(key.id)}/change/", f"{self.PAGE}{quote(key.id)}/history/"):
            shown = staff.get(page).content.decode()
            assert "Platform" in shown
            assert secret not in shown
            assert key.secret_hash not in shown

        staff.post(self.PAGE, {"action": "revoke", "_selected_action": key.id})
        assert code_of(Api(secret).get("/admin/workspaces")) == (401, "revoked_api_key")
        key.refresh_from_db()
        assert key.last_used_at
        entries = LogEntry.objects.filter(object_id=key.id).order_by("id")
        assert [(entry.user.email, entry.get_change_message()) for entry in entries] == [
            ("staff@postrider.example", "Added."),
            ("staff@postrider.example", "Revoked."),
        ]

    def test_a_key_is_neither_expired_at_first_nor_changed_or_deleted(self, staff):
        response = self.create(staff, expires_at_0="2020-01-01", expires_at_1="00:00")
        assert list(response.context["adminform"].form.errors) == ["expires_at"]
        assert not ManagementKey.objects.exists()
        key, _ = issue_management_key(name="Platform")
        fields = {"name": "Other", "group": "x"}
        assert staff.post(f"{self.PAGE}{quote(key.id)}/change/", fields).status_code == 403
        assert staff.post(f"{self.PAGE}{quote(key.id)}/delete/", {"post": "yes"}).status_code == 403
        assert ManagementKey.objects.get().name == "Platform"


def add_account(staff, **fields: str):
    body = {"email": "x@example.com", "password": PASSWORD, **no_memberships(), **fields}
    return staff.post("/admin/workspaces/user/add/", body)


def test_an_account_is_created_and_gets_a_password(staff, alice):
    for fields in ({"email": "ALICE@alice.example"}, {"password": "short"}, {"password": ""}):
        refused = add_account(staff, **fields)
        assert list(refused.context["adminform"].form.errors) == list(fields)
    assert User.objects.count() == 2

    assert add_account(staff, email="New@Example.com", is_staff="on").status_code == 302
    user = User.objects.get(email="new@example.com")
    assert (user.is_staff, user.check_password(PASSWORD)) == (True, True)

    url = f"/admin/workspaces/user/{user.pk}/password/"
    fields = {"password1": "a better battery", "password2": "a better battery", "set-password": "1"}
    assert staff.get(url).status_code == 200
    assert staff.post(url, {**fields, "usable_password": "true"}).status_code == 302
    user.refresh_from_db()
    assert user.check_password("a better battery")


def no_memberships() -> dict[str, str]:
    counts = {"TOTAL_FORMS": "0", "INITIAL_FORMS": "0", "MIN_NUM_FORMS": "0", "MAX_NUM_FORMS": "1000"}
    return {f"memberships-{name}": value for name, value in counts.items()}


def change_workspace(staff, workspace: Workspace, **fields: str):
    body = {"name": workspace.name, "plan": workspace.plan, **no_memberships(), **fields}
    return staff.post(f"/admin/workspaces/workspace/{quote(workspace.id)}/change/", body)


def test_a_workspace_is_suspended_with_a_reason_and_the_suspension_lifted(staff, alice):
    page = staff.get(f"/admin/workspaces/workspace/{quote(alice.workspace.id)}/change/").text
    assert re.search(r'<input[^>]+name="initial-suspended"[^>]+value="False"', page)
    refused = change_workspace(staff, alice.workspace, suspended="on")
    assert "Enter a reason" in refused.text

    assert change_workspace(staff, alice.workspace, suspended="on", suspended_reason="Spam.").status_code == 302
    alice.workspace.refresh_from_db()
    assert (alice.workspace.is_suspended, alice.workspace.suspended_reason) == (True, "Spam.")

    change_workspace(staff, alice.workspace, plan="pro", **{"initial-suspended": "True"})
    alice.workspace.refresh_from_db()
    assert (alice.workspace.is_suspended, alice.workspace.plan) == (False, "pro")


def test_limits_of_a_workspace_replace_those_of_its_plan(staff, alice):
    given = {"emails_per_month": "80000", "domain_limit": "Unlimited"}
    assert change_workspace(staff, alice.workspace, plan="pro", **given).status_code == 302
    workspace = Workspace.objects.get(id=alice.workspace.id)
    assert workspace.own_limits == {"emailsPerMonth": 80_000, "domains": None}
    assert (workspace.limits.emails_per_month, workspace.limits.domains, workspace.limits.retention.days) == (
        80_000, None, 90,
    )  # fmt: skip
    page = staff.get(f"/admin/workspaces/workspace/{quote(workspace.id)}/change/").content.decode()
    for name, value in {"emails_per_month": "80000", "domain_limit": "unlimited"}.items():
        assert re.search(rf'<input[^>]+name="{name}"[^>]+value="{value}"|value="{value}"[^>]+name="{name}"', page)
    refused = change_workspace(staff, workspace, retention_days="unlimited", **given)
    assert "Enter a whole number from 1 to 36500." in strip_tags(refused.content.decode())
    change_workspace(staff, workspace)
    assert Workspace.objects.get(id=workspace.id).own_limits == {}
    assert AuditEntry.objects.filter(act="plan_changed").latest("created_at").about == "pro"


def test_saving_an_outdated_page_neither_lifts_nor_suspends(staff, alice):
    suspend_workspace(alice.workspace, reason="Too many complaints.")
    change_workspace(staff, alice.workspace, plan="pro", **{"initial-suspended": "False"})
    alice.workspace.refresh_from_db()
    assert alice.workspace.is_suspended
    assert alice.workspace.suspended_reason == "Too many complaints."
    assert alice.workspace.plan == "pro"

    lift_suspension(alice.workspace)
    shown = {"initial-suspended": "True", "suspended": "on", "suspended_reason": "Too many complaints."}
    change_workspace(staff, alice.workspace, plan="free", **shown)
    alice.workspace.refresh_from_db()
    assert not alice.workspace.is_suspended


def test_lookups_of_secrets_are_refused(staff):
    queries = (
        "workspaces/apikey/?secret_hash__startswith=k1",
        "workspaces/user/?password__startswith=argon2",
        "workspaces/workspace/?api_keys__secret_hash__startswith=k1",
        "workspaces/membership/?user__password__startswith=argon2",
        "domains/domain/?dkim_keys__sealed_private_key__startswith=a",
        "emails/email/?content__html__contains=x",
        "workspaces/user/?_to_field=password",
    )
    assert [query for query in queries if staff.get(f"/admin/{query}").status_code != 400] == []


def test_the_pages_pass_djangos_checks():
    # config.urls registers them, and manage.py check may load it after these checks (docs/decisions/0259).
    assert admin.site._registry
    assert checks.run_checks(tags=[checks.Tags.admin]) == []


# The same in English and German.
SAME_IN_GERMAN = {
    *("Domains", "Enterprise", "Free", "Layout", "Name", "Normal", "Person", "Pro", "Status", "Streams", "Text"),
    *("ID", "TLS", "Webhooks", "domain", "domains"),
    *("name", "status", "text", "webhook", "webhooks"),
}


def staff_labels() -> list[str]:
    """Return the labels of models, fields, help texts and choices on the pages of the staff admin, in its order."""
    labels = []
    for model, page in admin.site._registry.items():
        options = model._meta
        labels += [options.verbose_name, options.verbose_name_plural, options.app_config.verbose_name]
        names = [*page.list_display, *flatten_fieldsets(page.fieldsets or [(None, {"fields": page.fields or ()})])]
        own = {name: field.label for name, field in page.form.declared_fields.items() if field.label}
        labels += [own.get(name) or label_for_field(name, model, page) for name in names]
        for field in (field for field in options.fields if field.name in names):
            # Labels that are values are names of events, which stay English.
            labels += [label for value, label in field.flatchoices if label != value]
            labels += [page.help_texts[field.name]] if field.name in page.help_texts else []
    return [str(label) for label in labels]


def test_the_labels_of_the_staff_admin_are_german():
    with override("en"):
        english = staff_labels()
    with override("de"):
        german = staff_labels()

    assert len(english) > 150
    assert {text for text, translation in zip(english, german, strict=True) if text == translation} <= SAME_IN_GERMAN


class TestStreams:
    def page(self, stream: Stream) -> str:
        return f"/admin/streams/stream/{quote(stream.id)}/change/"

    @pytest.fixture
    def stream(self, alice) -> Stream:
        return create_stream(alice.workspace, slug="newsletter", name="Newsletter", kind="bulk")

    def test_one_is_paused_with_a_reason_and_resumed(self, staff, alice, stream):
        refused = staff.post(self.page(stream), {"initial-paused": "False", "paused": "on", "reason": ""})
        assert "Enter a reason" in refused.text
        fields = {"initial-paused": "False", "paused": "on", "reason": "Spam."}
        assert staff.post(self.page(stream), fields).status_code == 302
        stream.refresh_from_db()
        assert (stream.paused_at is not None, stream.paused_reason) == (True, "Spam.")
        assert "Spam." in staff.get("/admin/streams/stream/").text
        # Saved by somebody whose page is older than the pause.
        staff.post(self.page(stream), {"initial-paused": "False", "reason": ""})
        stream.refresh_from_db()
        assert (stream.paused_at is not None, stream.paused_reason) == (True, "Spam.")
        staff.post(self.page(stream), {"initial-paused": "True", "reason": "Spam."})
        stream.refresh_from_db()
        assert (stream.paused_at, stream.paused_reason) == (None, "")
        entries = AuditEntry.objects.filter(act__startswith="stream_").order_by("id").values_list("act", "actor_kind")
        assert list(entries)[1:] == [("stream_paused", "staff"), ("stream_resumed", "staff")]

        # Several are resumed in the list.
        pause_stream(alice.workspace, "newsletter", reason="Spam.")
        staff.post("/admin/streams/stream/", {"action": "resume", "_selected_action": stream.id})
        stream.refresh_from_db()
        assert stream.paused_at is None

    def test_a_page_shows_no_sentence_of_the_api(self, staff, stream):
        sentences = [field.help_text for field in Stream._meta.fields if field.help_text]
        page = staff.get(self.page(stream)).text
        assert "Newsletter" in page
        assert len(sentences) > 10
        assert not [text for text in sentences if text in page]

    def test_main_is_not_paused(self, staff, alice):
        update_stream(alice.workspace, "main", changes={"name": "All"})
        main = Stream.objects.get(slug="main")
        response = staff.post(self.page(main), {"initial-paused": "False", "paused": "on", "reason": "Spam."})
        assert "Suspend the workspace instead." in response.text
        main.refresh_from_db()
        assert main.paused_at is None

    def test_one_is_neither_added_nor_deleted(self, staff, stream):
        assert staff.get("/admin/streams/stream/add/").status_code == 403
        assert staff.post(f"/admin/streams/stream/{quote(stream.id)}/delete/", {"post": "yes"}).status_code == 403

    def test_those_who_may_only_view_pause_nothing(self, client, alice, stream, helper):
        helper.user_permissions.add(Permission.objects.get(codename="view_stream"))
        client.force_login(helper)
        assert client.get(self.page(stream)).status_code == 200
        fields = {"initial-paused": "False", "paused": "on", "reason": "Spam."}
        assert client.post(self.page(stream), fields).status_code == 403
        pause_stream(alice.workspace, "newsletter", reason="Spam.")
        client.post("/admin/streams/stream/", {"action": "resume", "_selected_action": stream.id})
        stream.refresh_from_db()
        assert stream.paused_at
