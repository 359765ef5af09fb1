"""PASSWORDS=off and staff: no URL signs in by password, and the command prints a link that does once."""

import time
from io import StringIO
from urllib.parse import urlsplit

import pytest
from django.contrib import admin
from django.contrib.auth import authenticate
from django.contrib.auth.tokens import default_token_generator
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode

from config.checks import setting_errors
from console.system_mail.models import SystemMail
from core.workspaces.account_status import confirmation_token
from core.workspaces.members import invitation_token, invite_member
from core.workspaces.models import AuditEntry, User
from core.workspaces.second_factor import confirm_enrolment
from tests.conftest import PASSWORD
from tests.console.dashboard.auth.oidc.steps import is_signed_in
from tests.console.dashboard.auth.test_second_step import code
from tests.console.dashboard.conftest import begin_session, shown_text, signed_in
from tests.console.dashboard.routes import ROUTES, routes

NEW = "a better battery"


@pytest.fixture(autouse=True)
def _without_passwords(settings):
    settings.PASSWORDS, settings.OIDC_ISSUER, settings.OIDC_LABEL = "off", "https://id.example", "Example ID"


@pytest.fixture
def staff_user(db):
    return User.objects.create_superuser("staff@postrider.example", PASSWORD)


def asks_to_sign_in(response) -> bool:
    """Return whether a page is for those who are signed in only."""
    return response.status_code == 302 and response["Location"].startswith(("/dashboard/login/?", "/admin/login/?"))


def content_of(response) -> bytes:
    """Return the content of a page, none of a file."""
    return b"" if response.streaming else response.content


def bodies(alice, staff_user) -> list[dict[str, str]]:
    """Return forms with every name that a password field of the service has."""
    return [
        {
            "username": user.email, "email": user.email, "password": PASSWORD, "password1": NEW, "password2": NEW,
            "old_password": PASSWORD, "new_password1": NEW, "new_password2": NEW, "usable_password": "true",
            "workspace_name": "New", "code": "000000", "is_staff": "on", "next": "/dashboard/",
        }
        for user in (alice.owner, staff_user)
    ]  # fmt: skip


def queries(alice) -> list[dict[str, str]]:
    """Return the queries of links that pages with passwords have."""
    invited = invite_member(alice.workspace, email="new@example.com", role="member", by=alice.owner)
    account = urlsafe_base64_encode(force_bytes(alice.owner.pk))
    return [
        {},
        {"token": invitation_token(invited)},
        {"token": confirmation_token(alice.owner)},
        {"account": account, "token": default_token_generator.make_token(alice.owner)},
    ]


def every_path(alice, staff_user) -> list[str]:
    """Return the paths of all routes of both sites, with the ids of the two accounts."""
    found = {**{f"staff {name}": path for name, path in routes(admin.site.get_urls(), "/admin/").items()}, **ROUTES}
    ids = (str(alice.owner.pk), str(staff_user.pk))
    paths = [
        path.replace("<path:object_id>", known).replace("<str:object_id>", known).replace("<id>", known)
        for path in found.values()
        # Only accounts have passwords.
        for known in (ids if "<" in path and "/user/" in path else ids[:1])
    ]
    assert {"/dashboard/login/", "/admin/login/", f"/admin/workspaces/user/{ids[0]}/password/"} <= {*paths}
    return [path for path in paths if "(?P" not in path]


def test_no_url_signs_in_by_password(alice, staff_user, settings, monkeypatch):
    """Every URL of both sites gets every password form, signed out: nobody is signed in, and no password changes."""
    monkeypatch.setattr("console.dashboard.auth.throttle._take", lambda *_: 0)
    before = {user.pk: user.password for user in User.objects.all()}
    settings.SIGNUP = "open"

    for path in every_path(alice, staff_user):
        for query in queries(alice):
            client = Client(raise_request_exception=False)
            responses = [client.get(path, query)]
            for body in bodies(alice, staff_user):
                response = client.post(path, body, query_params=query)
                assert not is_signed_in(client), path
                assert response.status_code != 500, path
                assert b'type="password"' not in content_of(response), path
                responses.append(response)
                if all(map(asks_to_sign_in, responses)):
                    break
            if all(map(asks_to_sign_in, responses)):
                # Before it reads the query.
                break

    assert {user.pk: user.password for user in User.objects.all()} == before


def test_no_url_changes_a_password_of_those_who_are_signed_in(alice, staff_user, monkeypatch):
    monkeypatch.setattr("console.dashboard.auth.throttle._take", lambda *_: 0)
    before = {user.pk: user.password for user in User.objects.all()}
    # Deletes what it is given; it has no password.
    paths = [path for path in every_path(alice, staff_user) if not path.endswith(("/delete/", "/logout/"))]

    for user, body in zip((alice.owner, staff_user), bodies(alice, staff_user), strict=True):
        client = signed_in(user)
        for path in paths:
            if not is_signed_in(client):
                begin_session(client, user)
            response = client.post(path, body)
            assert b'type="password"' not in content_of(response), path

    known = User.objects.filter(pk__in=before)
    assert {user.pk: user.password for user in known} == before
    assert all(not user.has_usable_password() for user in User.objects.exclude(pk__in=before))


def test_authentication_refuses_every_password(alice, staff_user, settings):
    for settings.PASSWORDS, allowed in (("off", []), ("staff", [staff_user]), ("on", [alice.owner, staff_user])):
        users = [authenticate(username=user.email, password=PASSWORD) for user in (alice.owner, staff_user)]
        assert [user for user in users if user] == allowed


class TestSessionsThatBeganWithAPassword:
    """Sessions that are open when the service starts with another value of PASSWORDS."""

    @pytest.fixture
    def sessions(self, settings, alice, staff_user):
        """Sessions of a member and of staff at their sites, which began with a password."""
        settings.PASSWORDS, opened = "on", {}
        for path, user in (("/dashboard/", alice.owner), ("/admin/", staff_user)):
            opened[path] = Client()
            opened[path].post(f"{path}login/", {"username": user.email, "password": PASSWORD})
            assert opened[path].get(path).status_code == 200
        return opened

    def test_they_end_where_passwords_are_off(self, settings, sessions):
        for settings.PASSWORDS, going_on in (("staff", {"/admin/"}), ("off", set())):
            assert {path for path, client in sessions.items() if client.get(path).status_code == 200} == going_on
        settings.PASSWORDS = "on"
        assert [client.get(path).status_code for path, client in sessions.items()] == [302, 302]

    def test_a_second_step_after_a_password_is_not_completed(self, client, settings, alice):
        settings.PASSWORDS = "on"
        confirm_enrolment(alice.owner, code=code(alice.owner, -1))
        page = client.post("/dashboard/login/", {"username": alice.owner.email, "password": PASSWORD}).url
        settings.PASSWORDS = "off"
        assert client.post(page, {"code": code(alice.owner)}).url == "/dashboard/login/"
        assert not is_signed_in(client)

    def test_a_link_is_no_origin_of_a_later_password(self, client, settings, alice):
        client.post(sign_in_link(alice.owner.email))
        settings.PASSWORDS = "on"
        client.post("/dashboard/login/", {"username": alice.owner.email, "password": PASSWORD})
        settings.PASSWORDS = "off"
        assert client.get("/dashboard/").status_code == 302


def test_pages_have_only_the_provider(client, owner, alice):
    for path in ("/dashboard/login/", "/admin/login/"):
        page = client.get(path)
        assert b'name="password"' not in page.content
        assert "Sign in with Example ID" in shown_text(page)
        assert "Forgot your password?" not in shown_text(page)
        assert "Create an account" not in shown_text(page)
    for name in ("signup", "reset", "new_password"):
        assert client.get(ROUTES[name]).status_code == 404, name
        assert client.post(ROUTES[name], {"email": alice.owner.email, "password": NEW}).status_code == 404, name
    assert not SystemMail.objects.filter(state="waiting").exists()
    security = owner.get("/dashboard/security/")
    assert "Change password" not in shown_text(security)
    assert b'name="password"' not in security.content


def test_an_invited_person_signs_in_with_the_provider(client, alice):
    invited = invite_member(alice.workspace, email="new@example.com", role="member", by=alice.owner)
    page = client.get(f"/dashboard/invitation/?token={invitation_token(invited)}")
    assert "Sign in as new@example.com" in shown_text(page)
    assert b'name="password"' not in page.content


def test_staff_create_accounts_without_a_password(staff_user):
    client = signed_in(staff_user)
    inlines = {"memberships-TOTAL_FORMS": "0", "memberships-INITIAL_FORMS": "0"}
    client.post("/admin/workspaces/user/add/", {"email": "new@example.com", "password": NEW, **inlines})
    assert not User.objects.get(email="new@example.com").has_usable_password()


class TestStaffOnly:
    @pytest.fixture(autouse=True)
    def _staff(self, settings):
        settings.PASSWORDS = "staff"

    def test_only_staff_sign_in_and_only_at_their_site(self, client, alice, staff_user):
        for path in ("/dashboard/login/", "/admin/login/"):
            client.post(path, {"username": alice.owner.email, "password": PASSWORD})
            assert not is_signed_in(client)
        assert client.get("/dashboard/signup/").status_code == 404
        credentials = {"username": staff_user.email, "password": PASSWORD}
        assert client.post("/dashboard/login/", credentials).status_code == 404
        assert client.post("/admin/login/", credentials).url == "/admin/"

    def test_only_staff_reset_a_password(self, client, alice, staff_user):
        for user in (alice.owner, staff_user):
            client.post("/dashboard/reset/", {"email": user.email})
        assert SystemMail.objects.get(state="waiting").recipient == staff_user.email

    def test_only_staff_change_a_password(self, owner, staff_user):
        assert owner.get("/dashboard/password/").status_code == 404
        assert signed_in(staff_user).get("/admin/password_change/").status_code == 200


def test_postrider_does_not_start_without_a_way_to_sign_in(settings):
    settings.OIDC_ISSUER = ""
    for settings.PASSWORDS in ("off", "staff"):
        assert any("PASSWORDS leaves people no way to sign in" in error for error in setting_errors())


def sign_in_link(email: str) -> str:
    output = StringIO()
    call_command("sign_in_link", email, stdout=output)
    url = urlsplit(output.getvalue().strip())
    return f"{url.path}?{url.query}"


class TestSignInLink:
    def test_it_works_once(self, client, alice):
        link = sign_in_link(" Alice@alice.example")
        assert link.startswith("/dashboard/sign-in-link/")
        assert "alice@alice.example" in shown_text(client.get(link))
        assert not is_signed_in(client)

        assert client.post(link).url == "/dashboard/"
        assert client.get("/dashboard/").status_code == 200
        again = Client()
        assert (again.get(link).status_code, again.post(link).status_code) == (410, 410)
        assert not is_signed_in(again)

    def test_only_the_newest_of_two_that_are_used_at_once_counts(self, alice):
        first, second = sign_in_link(alice.owner.email), sign_in_link(alice.owner.email)
        assert Client().post(first).status_code == 302
        assert Client().post(second).status_code == 410

    def test_it_expires_after_ten_minutes(self, client, alice, monkeypatch):
        link = sign_in_link(alice.owner.email)
        now = time.time()
        monkeypatch.setattr("console.dashboard.auth.sign_in_link.time.time", lambda: now + 601)
        assert client.post(link).status_code == 410

    def test_staff_get_one_for_their_site(self, client, staff_user):
        link = sign_in_link(staff_user.email)
        assert link.startswith("/admin/sign-in-link/")
        assert client.post(link).url == "/admin/"
        assert client.get("/admin/").status_code == 200

    def test_the_second_factor_is_still_asked_for_and_the_link_is_used_up(self, client, alice):
        confirm_enrolment(alice.owner, code=code(alice.owner, -1))
        link = sign_in_link(alice.owner.email)

        code_page = client.post(link).url
        assert not is_signed_in(client)
        assert Client().post(link).status_code == 410
        assert client.post(code_page, {"code": code(alice.owner)}).url == "/dashboard/"

    def test_it_is_in_the_audit_log(self, client, alice):
        client.post(sign_in_link(alice.owner.email))
        entries = AuditEntry.objects.order_by("id").values_list("workspace", "act", "actor_kind")
        assert [*entries][-3:] == [
            (None, "sign_in_link", "service"),
            (alice.workspace.id, "sign_in_link", "service"),
            (alice.workspace.id, "signed_in", "person"),
        ]

    def test_a_session_goes_on_after_the_second_factor(self, client, alice):
        confirm_enrolment(alice.owner, code=code(alice.owner, -1))
        client.post(client.post(sign_in_link(alice.owner.email)).url, {"code": code(alice.owner)})
        assert client.get("/dashboard/").status_code == 200

    def test_another_text_is_no_link(self, client, db):
        for token in ("", "x", "AAAA"):
            assert client.post(f"/dashboard/sign-in-link/?token={token}").status_code == 410, token

    def test_there_is_none_for_unknown_or_inactive_accounts(self, alice):
        with pytest.raises(CommandError, match="no active account"):
            sign_in_link("nobody@example.com")
        User.objects.update(is_active=False)
        with pytest.raises(CommandError):
            sign_in_link(alice.owner.email)
