import pytest
from django.contrib.sessions.models import Session
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from system_mail.models import SystemMail
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


def test_the_database_has_no_session_key(owner):
    key = owner.cookies["session"].value
    stored = Session.objects.get()
    assert key not in (stored.session_key, stored.session_data)
    # The stored value signs nobody in.
    owner.cookies["session"] = stored.session_key
    assert not is_signed_in(owner)
    owner.cookies["session"] = key
    assert is_signed_in(owner)


def test_signing_out_deletes_the_session(owner):
    owner.post("/dashboard/logout/")
    assert not Session.objects.exists()


SPELLINGS = ["{} ", "  {}", "\t{}", "\u3000{}", "\xa0{}", "ALICE@alice.example", "ａｌｉｃｅ＠alice.example"]  # noqa: RUF001


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_of_an_account_shares_one_throttle(client, alice, settings, spelling):
    # Argon2 takes so long that the bucket refills.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    for _ in range(10):
        sign_in(client, alice.owner.email, "wrong")
    assert sign_in(client, spelling.format(alice.owner.email), PASSWORD).status_code == 429


def test_a_refused_attempt_keeps_the_address(client, alice):
    for _ in range(20):
        refused = sign_in(client, alice.owner.email, "wrong")
    assert refused.status_code == 429
    assert f'value="{alice.owner.email}"' in refused.content.decode()


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_every_spelling_identifies_the_account(client, alice, spelling):
    assert sign_in(client, spelling.format(alice.owner.email)).status_code == 302


def test_a_reset_is_throttled_by_account_in_every_spelling(client, alice):
    for spelling in ("alice@alice.example", " alice@alice.example", "ALICE@alice.example", "\u3000alice@alice.example"):
        assert client.post("/dashboard/reset/", {"email": spelling}).status_code == 200
    assert SystemMail.objects.count() == 3


@pytest.mark.parametrize(
    "path",
    ["/dashboard/login/", "/dashboard/signup/", "/dashboard/reset/", "/admin/login/", "/dashboard/code/"],
)
def test_a_large_form_is_refused_before_it_is_read(path):
    browser = Client(enforce_csrf_checks=True)
    part = SimpleUploadedFile("x", b"x" * 2 * 1024 * 1024)
    response = browser.post(path, {"file": part})
    assert response.status_code == 413
    assert b"Request too large" in response.content
    assert browser.post(path, {"file": SimpleUploadedFile("x", b"x" * 2_000_000)}).status_code != 413


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
