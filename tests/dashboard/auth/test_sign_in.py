import pytest

from tests.conftest import PASSWORD
from workspaces.models import User


def sign_in(client, email: str, password: str = PASSWORD, **fields: str):
    return client.post("/dashboard/login/", {"username": email, "password": password, **fields})


def is_signed_in(client) -> bool:
    return client.get("/dashboard/").status_code == 200


def test_with_address_and_password(client, alice):
    response = sign_in(client, "ALICE@alice.example")

    assert response.url == "/dashboard/"
    assert is_signed_in(client)


def test_creates_a_new_session(client, alice):
    client.get("/dashboard/login/")
    session = client.session
    session["kept"] = True
    session.save()
    before = session.session_key

    sign_in(client, alice.owner.email)

    assert client.session.session_key != before


def test_signing_out_ends_it(owner):
    response = owner.post("/dashboard/logout/")

    assert response.url == "/dashboard/login/"
    assert not is_signed_in(owner)


def test_refuses_a_wrong_password(client, alice):
    response = sign_in(client, alice.owner.email, "wrong")

    assert "Incorrect email address or password." in response.content.decode()
    assert not is_signed_in(client)


def test_refuses_an_inactive_account(client, alice):
    User.objects.update(is_active=False)

    sign_in(client, alice.owner.email)

    assert not is_signed_in(client)


def test_an_account_made_inactive_is_signed_out(owner, alice):
    User.objects.update(is_active=False)

    assert not is_signed_in(owner)


def test_staff_without_a_workspace_cannot_sign_in(client, db):
    User.objects.create_superuser("staff@postrider.example", PASSWORD)

    sign_in(client, "staff@postrider.example")

    assert not is_signed_in(client)


def test_staff_signed_in_to_the_staff_site_have_no_access(staff):
    assert staff.get("/dashboard/").status_code == 302


def test_an_owner_is_not_staff(owner):
    assert owner.get("/admin/").status_code == 302


@pytest.mark.parametrize("target", ["/dashboard/keys/", "/dashboard/emails/?status=bounced"])
def test_redirects_to_the_requested_page(client, alice, target):
    assert sign_in(client, alice.owner.email, next=target).url == target


@pytest.mark.parametrize(
    "target", ["https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)"]
)
def test_never_redirects_to_another_site(client, alice, target):
    assert sign_in(client, alice.owner.email, next=target).url == "/dashboard/"


@pytest.mark.parametrize("path", ["", "keys/", "emails/", "inbox/", "domains/", "password/", "workspace/", "nowhere/"])
def test_visitors_are_redirected_to_sign_in(client, db, path):
    response = client.get(f"/dashboard/{path}")

    assert response.status_code == 302
    assert response.url.startswith("/dashboard/login/?next=")


def test_the_password_can_be_changed(owner, alice):
    fields = {"old_password": PASSWORD, "new_password1": "a better battery", "new_password2": "a better battery"}

    assert owner.get("/dashboard/password/").status_code == 200
    assert owner.post("/dashboard/password/", fields).url == "/dashboard/password/done/"
    assert owner.get("/dashboard/password/done/").status_code == 200
    alice.owner.refresh_from_db()
    assert alice.owner.check_password("a better battery")
