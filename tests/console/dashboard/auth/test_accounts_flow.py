"""Emailed links of invitations, password resets and confirmations: one purpose each, from PUBLIC_URL, expiring."""

import re
from datetime import timedelta

import pytest
from django.test import Client

from console.system_mail.models import SystemMail
from core.workspaces.models import Invitation, Membership, User, Workspace
from core.workspaces.services import issue_api_key
from core.workspaces.tasks import expire
from tests.conftest import PASSWORD
from tests.console.dashboard.auth.test_sign_in import is_signed_in, sign_in
from tests.console.dashboard.conftest import count_queries, signed_in
from webhooks.services import create_webhook

NEW = "a better battery"


def last_link(kind: str) -> str:
    mail = SystemMail.objects.filter(kind=kind, state="waiting").latest("created_at")
    (url,) = re.findall(r"https?://\S+", mail.text)
    return url


def path_of(url: str) -> str:
    return url.removeprefix("https://mail.example.com")


@pytest.fixture(autouse=True)
def _public_url(settings):
    settings.PUBLIC_URL = "https://mail.example.com"


def invite(owner, email="new@example.com", role="member", **extra):
    return owner.post("/dashboard/members/invite/", {"email": email, "role": role}, **extra)


class TestInvitation:
    def test_a_new_user_signs_up_through_it_even_if_sign_up_is_closed(self, owner, alice, settings, client):
        settings.SIGNUP = "closed"
        invite(owner, "New@Example.com")
        path = path_of(last_link("invitation"))
        assert b"new@example.com" in client.get(path).content

        response = client.post(path, {"password": PASSWORD})

        assert response.url == "/dashboard/"
        user = User.objects.get(email="new@example.com")
        assert user.memberships.get().role == "member"
        assert client.get("/dashboard/").context["workspace"] == alice.workspace
        used = client.post(path, {"password": PASSWORD})
        assert (used.status_code, b"Ask a member of the workspace" in used.content) == (410, True)

    def test_an_account_signs_in_and_joins(self, owner, alice, bob, client):
        invite(owner, bob.owner.email, "owner")
        path = path_of(last_link("invitation"))
        assert b"Sign in as bob@bob.example" in client.get(path).content
        assert client.post(path, {"password": PASSWORD}).status_code == 200
        assert not bob.owner.memberships.filter(workspace=alice.workspace).exists()

        sign_in(client, bob.owner.email)
        # Viewing it accepts nothing.
        client.get(path)
        assert Invitation.objects.count() == 1
        assert client.post(path).url == "/dashboard/"

        assert bob.owner.memberships.get(workspace=alice.workspace).role == "owner"
        assert client.get("/dashboard/").context["workspace"] == alice.workspace

    def test_an_account_without_any_workspace_can_sign_in_to_join(self, owner, bob, client):
        Membership.objects.filter(user=bob.owner).delete()
        invite(owner, bob.owner.email)
        path = path_of(last_link("invitation"))

        assert sign_in(client, bob.owner.email, next=path).url == path
        assert client.post(path).url == "/dashboard/"

    def test_an_account_with_another_address_cannot_use_it(self, owner, alice, bob):
        invite(owner)
        other_user = signed_in(bob.owner)

        path = path_of(last_link("invitation"))
        page = other_user.post(path)

        assert b"a different address" in page.content
        assert other_user.post("/dashboard/logout/", {"next": path}).url == path
        assert alice.workspace.memberships.count() == 1

    def test_a_weak_password_is_refused_and_the_host_of_the_request_not_named(self, owner, client, settings):
        settings.ALLOWED_HOSTS = ["*"]
        invite(owner, headers={"host": "evil.example"})
        assert last_link("invitation").startswith("https://mail.example.com/dashboard/invitation/?token=")

        client.post(path_of(last_link("invitation")), {"password": "short"})

        assert not User.objects.filter(email="new@example.com").exists()


def request_reset(client, email: str, **extra):
    return client.post("/dashboard/reset/", {"email": email}, **extra)


def reset_password(email: str) -> None:
    """Choose a new password with the link of an email, in another browser."""
    browser = Client()
    request_reset(browser, email)
    browser.get(path_of(last_link("reset")))
    browser.post("/dashboard/reset/new/", {"password": NEW})


class TestReset:
    def test_the_password_is_changed_once_and_every_session_ends(self, client, owner, alice):
        request_reset(client, "ALICE@alice.example")
        path = path_of(last_link("reset"))
        form = client.get(path)
        assert form.url == "/dashboard/reset/new/"
        assert client.post(form.url, {"password": NEW}).url == "/dashboard/login/"
        assert not is_signed_in(owner)
        assert SystemMail.objects.filter(kind="notice", recipient=alice.owner.email).exists()

        assert sign_in(Client(), alice.owner.email).status_code == 200
        assert sign_in(client, alice.owner.email, NEW).url == "/dashboard/"
        again = Client()
        expired = again.get(path, follow=True)
        assert (expired.status_code, b"Request a new link" in expired.content) == (410, True)
        assert again.post("/dashboard/reset/new/", {"password": PASSWORD}).status_code == 410

    def test_the_response_does_not_reveal_whether_an_account_exists(self, client, alice):
        known, unknown = request_reset(client, alice.owner.email), request_reset(client, "nobody@alice.example")

        pages = [
            page.content.decode().replace(name, "")
            for page, name in ((known, alice.owner.email), (unknown, "nobody@alice.example"))
        ]
        scrubbed = [re.sub(r'value="\w{64}"', "", page) for page in pages]
        assert known.status_code == unknown.status_code == 200
        assert scrubbed[0] == scrubbed[1]
        assert SystemMail.objects.get(recipient="nobody@alice.example").state == "nobody"

    def test_known_and_unknown_addresses_take_as_many_statements(self, client, alice):
        known = count_queries(lambda: request_reset(client, alice.owner.email))
        assert count_queries(lambda: request_reset(client, "nobody@alice.example")) == known

    def test_a_link_lasts_an_hour(self, client, alice, time_machine_at):
        request_reset(client, alice.owner.email)
        path = path_of(last_link("reset"))

        with time_machine_at(timedelta(minutes=59)):
            assert Client().get(path, follow=True).status_code == 200
        with time_machine_at(timedelta(minutes=61)):
            assert Client().get(path, follow=True).status_code == 410

    def test_an_invalid_link_changes_nothing(self, client, alice):
        for query in ("account=x&token=y", "account=&token=", "account=MQ&token=x", "account=%00&token=x"):
            assert client.get(f"/dashboard/reset/new/?{query}", follow=True).status_code == 410, query

    def test_repeated_requests_send_three_emails_that_never_name_the_host(self, client, alice, settings):
        settings.ALLOWED_HOSTS = ["*"]
        headers = {"host": "evil.example", "x-forwarded-host": "evil.example"}
        spellings = ("alice@alice.example", " alice@alice.example", "ALICE@alice.example", "\u3000alice@alice.example")
        statuses = [request_reset(client, spelling, headers=headers).status_code for spelling in spellings]

        assert statuses == [200] * 4
        assert SystemMail.objects.filter(kind="reset").count() == 3
        assert last_link("reset").startswith("https://mail.example.com/dashboard/reset/new/?")

    def test_one_ip_address_is_throttled(self, client, alice):
        statuses = [request_reset(client, f"{n}@example.com").status_code for n in range(12)]

        assert statuses.count(429) == 2


@pytest.fixture
def time_machine_at():
    from datetime import UTC, datetime

    import time_machine

    return lambda later: time_machine.travel(datetime.now(UTC) + later, tick=False)


class TestEmailConfirmation:
    @pytest.fixture
    def new_user(self, client, settings, db):
        settings.EMBEDDED, settings.SIGNUP = False, "open"
        client.post("/dashboard/signup/", {"email": "new@example.com", "password": PASSWORD, "workspace_name": "Acme"})
        return client

    def test_a_new_workspace_requires_it(self, new_user):
        assert not Workspace.objects.get().is_proven
        assert b"Confirm your email address" in new_user.get("/dashboard/keys/").content
        assert new_user.get("/dashboard/members/invite/").status_code == 403

        path = path_of(last_link("proof"))
        new_user.get(path)
        assert not Workspace.objects.get().is_proven
        assert new_user.post(path).url == "/dashboard/"

        assert Workspace.objects.get().is_proven
        assert b"Confirm your email address" not in new_user.get("/dashboard/keys/").content

    def test_confirming_requires_sign_in_to_that_account(self, new_user, bob):
        path = path_of(last_link("proof"))
        stranger = Client()

        for client in (stranger, signed_in(bob.owner)):
            client.post(path)
        assert not Workspace.objects.get(name="Acme").is_proven

        assert b"Sign in and confirm" in stranger.get(path).content
        assert sign_in(stranger, "new@example.com", next=path).url == path
        stranger.post(path)
        assert Workspace.objects.get(name="Acme").is_proven

    def test_the_owner_of_the_address_deletes_the_account_without_signing_in(self, new_user):
        issue_api_key(Workspace.objects.get(), name="planted", scope="full_access")
        path = path_of(last_link("proof"))
        owner_of_the_address = Client()
        owner_of_the_address.get(path)
        owner_of_the_address.head(path)
        assert User.objects.filter(email="new@example.com").exists()

        assert owner_of_the_address.post(path, {"discard": "yes"}).url == "/dashboard/login/"

        assert not User.objects.filter(email="new@example.com").exists()
        assert not is_signed_in(new_user)
        assert Client().get(path).status_code == 410
        expire()
        assert not Workspace.objects.exists()

    def test_a_confirmed_account_cannot_be_deleted_by_the_link(self, new_user):
        path = path_of(last_link("proof"))
        new_user.post(path)
        other_browser = Client()
        assert b"Delete this account" not in other_browser.get(path).content

        other_browser.post(path, {"discard": "yes"})
        expire()

        assert is_signed_in(new_user)
        assert Workspace.objects.get().is_proven

    def test_a_member_of_a_confirmed_workspace_cannot_be_deleted_by_the_link(self, new_user, alice):
        user = User.objects.get(email="new@example.com")
        Membership.objects.create(workspace=alice.workspace, user=user)

        Client().post(path_of(last_link("proof")), {"discard": "yes"})

        assert User.objects.filter(pk=user.pk).exists()

    def test_a_password_reset_before_it_revokes_api_keys_and_webhooks(self, new_user):
        workspace = Workspace.objects.get()
        issue_api_key(workspace, name="planted", scope="full_access")
        create_webhook(workspace, url="https://example.com/hook", events=["sent"])

        reset_password("new@example.com")

        assert workspace.api_keys.get().is_revoked
        assert not workspace.webhooks.exists()

    def test_a_password_reset_after_it_keeps_api_keys(self, new_user):
        issue_api_key(Workspace.objects.get(), name="server", scope="full_access")
        new_user.post(path_of(last_link("proof")))

        reset_password("new@example.com")

        assert not Workspace.objects.get().api_keys.get().is_revoked

    def test_the_link_can_be_sent_again_and_lasts_seven_days(self, new_user, owner, time_machine_at):
        new_user.post("/dashboard/proof/again/")
        assert SystemMail.objects.filter(kind="proof").count() == 2
        assert new_user.get("/dashboard/proof/again/").status_code == 405
        with time_machine_at(timedelta(days=7, minutes=1)):
            assert Client().post(path_of(last_link("proof"))).status_code == 410
        # A token of another purpose is none.
        invite(owner)
        token = last_link("invitation").partition("token=")[2]
        assert Client().post(f"/dashboard/proof/?token={token}").status_code == 410
        assert not Workspace.objects.get(name="Acme").is_proven

    def test_embedded_mode_requires_none(self, client, settings, db):
        settings.EMBEDDED = True

        client.post("/dashboard/signup/", {"email": "x@example.com", "password": PASSWORD, "workspace_name": "A"})

        assert Workspace.objects.get().is_proven
        assert not SystemMail.objects.exists()
