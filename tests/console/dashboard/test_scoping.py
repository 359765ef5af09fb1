import re

import pytest
from django.db.models.functions import Now

from alerts.models import Alert
from core.workspaces.deletion import delete_workspace
from core.workspaces.models import ApiKey, Membership, Workspace
from core.workspaces.services import create_workspace
from domains.models import DkimKey, Domain
from emails.models import Email
from interfaces.inbound.inbox.models import CaughtMail
from receiving.models import InboundRoute, ReceivedEmail, SenderBlock
from streams.models import Stream
from suppressions.models import Suppression
from suppressions.services import suppress_address
from templates_app.models import Template
from tests.conftest import make_domain, make_key
from tests.console.dashboard.conftest import make_caught, make_email, make_received, signed_in
from tests.console.dashboard.routes import NOT_A_PAGE, POST_ONLY, ROUTES
from tests.console.dashboard.scenario import fill_workspace_with
from webhooks.models import Webhook, WebhookDelivery, WebhookSecret

WITH_OBJECT = {name: route for name, route in ROUTES.items() if "object_id" in route}


@pytest.fixture
def bobs(bob):
    """The id of one object of Bob's workspace for each kind that has pages, with a secret in all texts."""
    objects = fill_workspace_with(bob, "Bobs-secret-plan")
    # A preview needs HTML, or a text file.
    objects["inbox_caughtmail"] = make_caught(bob.workspace, subject="Bobs-secret-plan")
    message = objects["receiving_receivedemail"].message
    message.attachments = [{**entry, "contentType": "text/plain"} for entry in message.attachments]
    message.save(update_fields=["attachments"])
    return {kind: str(one.pk) for kind, one in objects.items()}


# Other methods than those of browsers are sent to the main page of each kind.
METHODS = {True: ("get", "post", "head", "put", "options"), False: ("get", "post")}


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


def test_an_object_of_another_workspace_is_not_found_and_not_changed(owner, bob, bobs):
    before, wrong = rows_of(bob), []
    for name, route in WITH_OBJECT.items():
        ids = (bobs[name.rsplit("_", 1)[0]], "nothing-like-an-id")
        for method in METHODS[name.endswith("_change")]:
            foreign, unknown = (getattr(owner, method)(route.replace("<str:object_id>", one)) for one in ids)
            # 405: the route does not accept the method from any user.
            is_refused = foreign.status_code == unknown.status_code and foreign.status_code in {404, 405}
            if not is_refused or b"secret" in foreign.content:
                wrong.append((name, method, foreign.status_code, unknown.status_code))
        if rows_of(bob) != before:
            wrong.append((name, "changed a row"))
            before = rows_of(bob)

    assert wrong == []


def test_the_owner_of_an_object_finds_its_pages(bob, bobs):
    browser = signed_in(bob.owner)
    paths = {name: path.replace("<str:object_id>", bobs[name.rsplit("_", 1)[0]]) for name, path in WITH_OBJECT.items()}
    paths |= {name: ROUTES[name] for name in POST_ONLY | NOT_A_PAGE if name not in WITH_OBJECT}
    wrong = []
    for name, path in paths.items():
        response = browser.get(path)
        if name in NOT_A_PAGE and b"nav-sidebar" in b"".join(response):
            wrong.append((name, "is a page"))
        if response.status_code != (405 if name in POST_ONLY else 200) and name in {*WITH_OBJECT, *POST_ONLY}:
            wrong.append((name, response.status_code))

    assert wrong == []


def test_no_page_shows_data_of_another_workspace(owner, bobs):
    pages = {name: b"".join(owner.get(route)).decode() for name, route in ROUTES.items() if name not in WITH_OBJECT}

    assert [name for name, page in pages.items() if "secret-plan" in page or re.search(r"\bbob", page)] == []


FOREIGN_PARAMETERS = {
    "keys": (
        "secret_hash__startswith=k1", "secret_hash=x", "workspace__name__startswith=b", "id__gt=0",
        "workspace__users__password__startswith=argon", "_to_field=secret_hash",
    ),
    "domains": ("dkim_keys__sealed_private_key__startswith=a",),
    "emails": ("content__html__contains=x", "status__startswith=d", "workspace__name=bob", "utm_source=newsletter"),
    "suppressions": ("workspace__name=bob",),
    "inbox": ("source__contains=x",),
    "received": ("message__text__contains=secret", "workspace__name=bob"),
}  # fmt: skip


def test_parameters_other_than_the_filters_are_ignored(owner, alice):
    make_key(alice.workspace)
    make_domain(alice.workspace, "second.example")
    make_email(alice.workspace)
    suppress_address(alice.workspace, address="ada@example.com", reason="manual")
    make_caught(alice.workspace)
    make_received(alice.workspace)
    for path, queries in FOREIGN_PARAMETERS.items():
        everything = owner.get(f"/dashboard/{path}/").context["listing"].rows
        assert everything, path
        for query in queries:
            response = owner.get(f"/dashboard/{path}/?{query}")
            assert (response.status_code, response.context["listing"].rows) == (200, everything), query


def test_nul_in_a_query_is_ignored(owner):
    parameters = {
        **dict.fromkeys(("keys", "domains", "templates", "webhooks", "alerts"), ("search", "p", "x")),
        "emails": ("search", "status", "tag", "from", "to", "p", "template", "sender", "event"),
        "suppressions": ("search", "reason", "stream", "p"),
        "inbox": ("search", "p"),
        "audit": ("search", "category", "p"),
        "routes": ("recipient", "p"),
        "received": ("search", "recipient", "routeId", "status", "tag", "from", "subject", "after"),
        "requests": ("search", "result", "email", "key"),
    }
    queries = [
        f"{path}/?{name}={value}"
        for path, names in parameters.items()
        for name in names
        for value in ("%00", "bounce%00")
    ]

    assert [query for query in queries if owner.get(f"/dashboard/{query}").status_code != 200] == []


class TestSeveralWorkspaces:
    @pytest.fixture
    def second(self, alice):
        return create_workspace(name="second", plan="free", owner=alice.owner)

    def test_switching_changes_the_visible_objects_and_ends_with_the_membership(self, owner, alice, second):
        email = make_email(second, subject="In the second")
        page = owner.get("/dashboard/").text
        assert "hx-post" in page
        assert second.id in page
        assert owner.get(f"/dashboard/emails/{email.id}/").status_code == 404

        # The menu gets a header in place of a redirect.
        of_menu = owner.post("/dashboard/workspace/", {"workspace": second.id}, headers={"hx-request": "true"})
        assert (of_menu.status_code, of_menu["HX-Redirect"]) == (204, "/dashboard/")
        assert owner.post("/dashboard/workspace/", {"workspace": second.id}).url == "/dashboard/"

        assert "In the second" in owner.get("/dashboard/emails/").text
        assert owner.get(f"/dashboard/emails/{email.id}/").status_code == 200
        owner.post("/dashboard/keys/add/", {"name": "x", "scope": "read_only"})
        assert ApiKey.objects.get().workspace == second
        Membership.objects.filter(workspace=second).delete()
        assert owner.get("/dashboard/").context["workspace"] == alice.workspace
        Membership.objects.all().delete()
        assert owner.get("/dashboard/keys/").status_code == 302

    def test_neither_a_foreign_workspace_nor_a_link_switches(self, owner, bob, second):
        assert owner.post("/dashboard/workspace/", {"workspace": bob.workspace.id}).status_code == 404
        assert not re.search(r"\bbob", owner.get("/dashboard/").text)
        assert owner.get(f"/dashboard/workspace/?workspace={second.id}").status_code == 405

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
