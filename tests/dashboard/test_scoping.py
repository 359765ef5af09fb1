import re

import pytest
from django.db.models.functions import Now

from alerts.models import Alert
from alerts.services import create_alert
from domains.models import DkimKey, Domain
from emails.models import Attachment, Email
from inbound.inbox.models import CaughtMail
from receiving.models import SHARED, InboundRoute, ReceivedEmail, SenderBlock
from receiving.services import block_sender, create_route
from streams.models import Stream
from streams.services import create_stream
from suppressions.models import Suppression
from suppressions.services import suppress_address
from templates_app.models import Template
from templates_app.services import TemplateContent, create_template
from tests.conftest import make_domain, make_key
from tests.dashboard.conftest import make_caught, make_email, make_received, signed_in
from tests.dashboard.routes import NOT_A_PAGE, POST_ONLY, ROUTES
from webhooks.models import Webhook, WebhookDelivery, WebhookSecret
from webhooks.services import create_webhook, send_test
from workspaces.deletion import delete_workspace
from workspaces.models import ApiKey, Membership, Workspace
from workspaces.services import create_workspace

WITH_OBJECT = {name: route for name, route in ROUTES.items() if "object_id" in route}


@pytest.fixture
def bobs(bob, settings):
    """One object of Bob's workspace for each kind that has pages."""
    settings.WEBHOOK_ALLOW_PRIVATE_NETWORKS = True
    make_key(bob.workspace)
    webhook, _ = create_webhook(bob.workspace, url="https://bobs-secret.example/", events=["delivered"])
    template = create_template(
        bob.workspace,
        name="Bob's secret",
        content=TemplateContent("Bob's secret", "<p>secret</p>"),
        alias="bobs-secret",
        strict_variables=False,
    )
    email = make_email(bob.workspace, subject="Bob's secret plan")
    Attachment.objects.create(
        content=email.content, position=0, filename="secret.txt", content_type="text/plain", size=6, data=b"secret"
    )
    suppression, _ = suppress_address(bob.workspace, address="secret@bob.example", reason="manual")
    return {
        "templates_app_template": template.id,
        "webhooks_webhook": webhook.id,
        "webhooks_webhookdelivery": send_test(webhook).id,
        "streams_stream": create_stream(bob.workspace, slug="bobs-secret", name="Bob's secret").id,
        "alerts_alert": create_alert(bob.workspace, metric="bounce_rate", threshold=4).id,
        "suppressions_suppression": suppression.id,
        "emails_email": email.id,
        "inbox_caughtmail": make_caught(bob.workspace, subject="Bob's secret plan").id,
        "receiving_receivedemail": make_received(
            bob.workspace,
            subject="Bob's secret plan",
            text="secret",
            html="secret",
            status="blocked",
            attachments=[{"filename": "secret.txt", "data": b"secret"}],
        ).id,
        "receiving_inboundroute": create_route(
            bob.workspace, values={"name": "Bob's secret plan", "match": "secret", "domain": SHARED}
        ).id,
        "receiving_senderblock": block_sender(bob.workspace, sender="secret@bob.example")[0].id,
        "domains_domain": make_domain(bob.workspace, "bobs-secret.example").id,
        "workspaces_apikey": ApiKey.objects.get().id,
        "workspaces_membership": str(bob.workspace.memberships.get().pk),
    }


METHODS = ["get", "head", "post", "put", "patch", "delete", "options", "trace"]


def test_every_route_with_an_object_is_covered(bobs):
    assert {name.rsplit("_", 1)[0] for name in WITH_OBJECT} == set(bobs)
    # Objects must use this placeholder, or the tests would skip their routes.
    others = {name: route for name, route in ROUTES.items() if "<" in route and name not in WITH_OBJECT}
    assert not others


def rows_of(account) -> list[str]:
    """Return all rows of a workspace as text, to detect any change."""
    kinds = [ApiKey, Domain, Email, CaughtMail, Template, Webhook, Stream, Suppression, WebhookDelivery]
    kinds += [InboundRoute, ReceivedEmail, SenderBlock, Alert]
    found = [repr(sorted(kind.objects.filter(workspace=account.workspace).values_list())) for kind in kinds]
    return [*found, repr(list(WebhookSecret.objects.values_list("id", "expires_at"))), repr(DkimKey.objects.count())]


@pytest.mark.parametrize("name", WITH_OBJECT)
def test_an_object_of_another_workspace_is_not_found_and_not_changed(owner, bob, bobs, name):
    route = WITH_OBJECT[name]
    foreign = route.replace("<str:object_id>", bobs[name.rsplit("_", 1)[0]])
    unknown = route.replace("<str:object_id>", "nothing-like-an-id")
    before = rows_of(bob)

    for method in METHODS:
        answers = [getattr(owner, method)(path) for path in (foreign, unknown)]
        # 405: the route does not accept the method from any user.
        assert {answer.status_code for answer in answers} <= {404, 405}, method
        assert answers[0].status_code == answers[1].status_code
        assert b"secret" not in answers[0].content

    assert rows_of(bob) == before


@pytest.mark.parametrize("name", WITH_OBJECT)
def test_its_owner_finds_it(bob, bobs, name):
    path = WITH_OBJECT[name].replace("<str:object_id>", bobs[name.rsplit("_", 1)[0]])

    assert signed_in(bob.owner).get(path).status_code == (405 if name in POST_ONLY else 200)


@pytest.mark.parametrize("name", sorted(POST_ONLY - WITH_OBJECT.keys()))
def test_an_action_without_an_object_is_refused_to_a_link(owner, name):
    assert owner.get(ROUTES[name]).status_code == 405


@pytest.mark.parametrize("name", sorted(NOT_A_PAGE))
def test_a_route_listed_as_no_page_returns_no_page(bob, bobs, name):
    path = ROUTES[name].replace("<str:object_id>", bobs.get(name.rsplit("_", 1)[0], ""))

    assert b"nav-sidebar" not in b"".join(signed_in(bob.owner).get(path))


@pytest.mark.parametrize("name", [name for name in ROUTES if name not in WITH_OBJECT])
def test_no_page_shows_data_of_another_workspace(owner, bobs, name):
    response = owner.get(ROUTES[name])
    page = b"".join(response).decode()

    assert "secret plan" not in page
    assert not re.search(r"\bbob", page)


@pytest.mark.parametrize(
    ("path", "query"),
    [
        ("keys", "secret_hash__startswith=k1"),
        ("keys", "secret_hash=x"),
        ("keys", "workspace__name__startswith=b"),
        ("keys", "workspace__users__password__startswith=argon"),
        ("keys", "id__gt=0"),
        ("domains", "dkim_keys__sealed_private_key__startswith=a"),
        ("emails", "content__html__contains=secret"),
        ("emails", "status__startswith=d"),
        ("suppressions", "workspace__name=bob"),
        ("emails", "workspace__name=bob"),
        ("inbox", "source__contains=x"),
        ("received", "message__text__contains=secret"),
        ("received", "workspace__name=bob"),
        ("keys", "_to_field=secret_hash"),
        ("emails", "utm_source=newsletter"),
    ],
)
def test_parameters_other_than_the_filters_are_ignored(owner, alice, path, query):
    make_key(alice.workspace)
    make_domain(alice.workspace, "second.example")
    make_email(alice.workspace)
    suppress_address(alice.workspace, address="ada@example.com", reason="manual")
    make_caught(alice.workspace)
    make_received(alice.workspace)
    everything = owner.get(f"/dashboard/{path}/")
    response = owner.get(f"/dashboard/{path}/?{query}")
    assert (response.status_code, response.context["listing"].rows) == (200, everything.context["listing"].rows)
    assert everything.context["listing"].rows


@pytest.mark.parametrize(
    "path",
    [
        "emails", "suppressions", "keys", "domains", "templates", "webhooks", "inbox", "audit", "received", "routes",
        "alerts",
    ],
)  # fmt: skip
def test_nul_in_a_query_is_ignored(owner, path):
    for name in ("reason", "search", "status", "tag", "from", "to", "p", "x", "recipient", "routeId", "after"):
        for value in ("%00", "bounce%00"):
            assert owner.get(f"/dashboard/{path}/?{name}={value}").status_code == 200, name


class TestSeveralWorkspaces:
    @pytest.fixture
    def second(self, alice):
        return create_workspace(name="second", plan="free", owner=alice.owner)

    def test_the_first_is_shown_and_the_other_offered(self, owner, second):
        page = owner.get("/dashboard/").content.decode()

        assert "hx-post" in page
        assert second.id in page

    def test_switching_changes_the_visible_objects(self, owner, alice, second):
        email = make_email(second, subject="In the second")

        assert owner.get(f"/dashboard/emails/{email.id}/").status_code == 404
        response = owner.post("/dashboard/workspace/", {"workspace": second.id})

        assert response.url == "/dashboard/"
        assert "In the second" in owner.get("/dashboard/emails/").content.decode()
        assert owner.get(f"/dashboard/emails/{email.id}/").status_code == 200

    def test_the_menu_gets_a_redirect_header(self, owner, second):
        response = owner.post("/dashboard/workspace/", {"workspace": second.id}, headers={"hx-request": "true"})

        assert (response.status_code, response["HX-Redirect"]) == (204, "/dashboard/")

    def test_a_new_key_belongs_to_the_selected_workspace(self, owner, second):
        owner.post("/dashboard/workspace/", {"workspace": second.id})

        owner.post("/dashboard/keys/add/", {"name": "x", "scope": "read_only"})

        assert ApiKey.objects.get().workspace == second

    def test_a_workspace_without_membership_cannot_be_selected(self, owner, bob):
        assert owner.post("/dashboard/workspace/", {"workspace": bob.workspace.id}).status_code == 404
        assert not re.search(r"\bbob", owner.get("/dashboard/").text)

    def test_following_a_link_switches_nothing(self, owner, second):
        assert owner.get(f"/dashboard/workspace/?workspace={second.id}").status_code == 405

    def test_a_selection_ends_with_the_membership(self, owner, alice, second):
        owner.post("/dashboard/workspace/", {"workspace": second.id})
        Membership.objects.filter(workspace=second).delete()

        assert owner.get("/dashboard/").context["workspace"] == alice.workspace

    def test_removing_the_last_membership_ends_access(self, owner, alice):
        Membership.objects.all().delete()

        assert owner.get("/dashboard/keys/").status_code == 302

    def test_a_deleted_workspace_says_so_on_every_page_until_it_is_erased(self, owner, second):
        owner.post("/dashboard/workspace/", {"workspace": second.id})
        delete_workspace(second)
        for page in ("/dashboard/", "/dashboard/keys/"):
            assert "This workspace is deleted." in owner.get(page).content.decode()
        response = owner.post("/dashboard/keys/add/", {"name": "x", "scope": "read_only"})
        assert response.status_code == 200
        assert "It can be restored until" in response.content.decode()
        Workspace.objects.filter(id=second.id).update(deletes_at=Now())
        assert owner.get("/dashboard/").context["workspace"] != second
