import pytest
from django.test import Client

from core.workspaces.models import User, Workspace

FORM = {"email": "New@Example.com", "password": "correct horse battery", "workspace_name": "Acme"}


def sign_up(client: Client, **fields: str):
    return client.post("/dashboard/signup/", {**FORM, **fields})


@pytest.mark.django_db
class TestOpen:
    def test_creates_an_account_with_a_workspace_and_signs_in(self, client, settings):
        settings.DEFAULT_PLAN = "pro"

        response = sign_up(client)

        assert (response.status_code, response.url) == (302, "/dashboard/")
        workspace = Workspace.objects.get()
        assert (workspace.name, workspace.plan) == ("Acme", "pro")
        assert workspace.memberships.get().role == "owner"
        assert workspace.users.get().email == "new@example.com"
        assert b"Acme" in client.get("/dashboard/").content

    def test_an_address_in_use_is_a_form_error(self, client, alice):
        response = sign_up(client, email=alice.owner.email.upper())

        assert response.status_code == 200
        assert "already exists" in response.content.decode()
        assert Workspace.objects.count() == 1

    def test_a_weak_password_is_a_form_error(self, client):
        for password in ("short", "1234567890", "new@example.com", ""):
            response = sign_up(client, password=password)
            assert (response.status_code, "password" in response.context["form"].errors) == (200, True), password
        assert not User.objects.exists()

    def test_a_signed_in_user_is_redirected_to_the_overview(self, owner):
        assert owner.get("/dashboard/signup/").url == "/dashboard/"


@pytest.mark.django_db
class TestClosed:
    @pytest.fixture(autouse=True)
    def _closed(self, settings, _trial_settings):
        settings.SIGNUP = "closed"

    def test_nothing_is_created_or_offered(self, client):
        page = client.get("/dashboard/signup/")
        assert (page.status_code, "Sign-up is closed" in page.text) == (403, True)
        assert sign_up(client).status_code == 403
        assert not User.objects.exists()
        assert "/dashboard/signup/" not in client.get("/dashboard/login/").text
