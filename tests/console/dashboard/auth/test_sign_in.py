from django.contrib.sessions.models import Session
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from core.workspaces.models import User
from tests.conftest import PASSWORD


def sign_in(client, email: str, password: str = PASSWORD, **fields: str):
    return client.post("/dashboard/login/", {"username": email, "password": password, **fields})


def is_signed_in(client) -> bool:
    return client.get("/dashboard/").status_code == 200


def test_with_address_and_password_in_a_new_session(client, alice):
    client.get("/dashboard/login/")
    session = client.session
    session["kept"] = True
    session.save()
    before = session.session_key

    assert "Incorrect email address or password." in sign_in(client, alice.owner.email, "wrong").text
    assert not is_signed_in(client)
    assert sign_in(client, "ALICE@alice.example").url == "/dashboard/"

    assert is_signed_in(client)
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


def test_signing_out_ends_and_deletes_the_session(owner):
    assert owner.get("/dashboard/logout/").status_code == 405
    assert is_signed_in(owner)
    assert owner.post("/dashboard/logout/").url == "/dashboard/login/"
    assert not is_signed_in(owner)
    assert not Session.objects.exists()


SPELLINGS = ["{} ", "  {}", "\t{}", "\u3000{}", "\xa0{}", "ALICE@alice.example", "ａｌｉｃｅ＠alice.example"]  # noqa: RUF001


def test_every_spelling_identifies_the_account_and_shares_its_throttle(client, alice):
    spellings = [spelling.format(alice.owner.email) for spelling in SPELLINGS]
    for spelling in spellings:
        assert sign_in(Client(), spelling).status_code == 302, spelling
    for _ in range(8):
        refused = sign_in(client, alice.owner.email, "wrong")
    assert refused.status_code == 429
    assert f'value="{alice.owner.email}"' in refused.text
    for spelling in spellings:
        assert sign_in(client, spelling).status_code == 429, spelling


def test_a_large_form_is_refused_before_it_is_read():
    browser = Client(enforce_csrf_checks=True)
    for path in ("/dashboard/login/", "/dashboard/signup/", "/dashboard/reset/", "/admin/login/", "/dashboard/code/"):
        response = browser.post(path, {"file": SimpleUploadedFile("x", b"x" * 2 * 1024 * 1024)})
        assert (response.status_code, b"Request too large" in response.content) == (413, True), path
        assert browser.post(path, {"file": SimpleUploadedFile("x", b"x" * 2_000_000)}).status_code != 413, path


def test_who_has_no_access_to_the_other_site(client, owner, staff):
    """Staff without a workspace neither sign in to the dashboard nor have access; an owner is not staff."""
    sign_in(client, "staff@postrider.example")
    assert not is_signed_in(client)
    assert staff.get("/dashboard/").status_code == 302
    assert owner.get("/admin/").status_code == 302


def test_an_inactive_account_is_signed_out_and_refused(client, owner):
    User.objects.update(is_active=False)
    assert not is_signed_in(owner)
    sign_in(client, "alice@alice.example")
    assert not is_signed_in(client)


def test_redirects_to_the_requested_page_of_this_site(alice):
    ours = ("/dashboard/keys/", "/dashboard/emails/?status=bounced")
    others = ("https://evil.example/", "//evil.example", "/\\evil.example", "javascript:alert(1)")
    expected = {**{path: path for path in ours}, **dict.fromkeys(others, "/dashboard/")}

    assert {target: sign_in(Client(), alice.owner.email, next=target).url for target in expected} == expected


def test_visitors_are_redirected_to_sign_in(client, db):
    for path in ("", "keys/", "emails/", "inbox/", "domains/", "password/", "workspace/", "nowhere/", "security/"):
        response = client.get(f"/dashboard/{path}")
        assert (response.status_code, response.url.partition("?next=")[0]) == (302, "/dashboard/login/"), path


def test_the_password_can_be_changed(owner, alice):
    fields = {"old_password": PASSWORD, "new_password1": "a better battery", "new_password2": "a better battery"}

    assert owner.get("/dashboard/password/").status_code == 200
    assert owner.post("/dashboard/password/", fields).url == "/dashboard/password/done/"
    assert owner.get("/dashboard/password/done/").status_code == 200
    alice.owner.refresh_from_db()
    assert alice.owner.check_password("a better battery")
