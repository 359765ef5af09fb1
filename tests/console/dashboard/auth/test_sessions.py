"""The list of one's own sessions, and ending them (docs/decisions/0393)."""

import pytest
from django.contrib.sessions.models import Session
from django.test import Client

from console.dashboard.auth.sessions import SessionStore, stored_key
from console.dashboard.texts.browsers import browser_name
from core.workspaces.models import AccountSession, AuditEntry, User
from tests.conftest import PASSWORD
from tests.console.dashboard.conftest import shown_text

SECURITY, END = "/dashboard/security/", "/dashboard/security/sessions/"
FIREFOX = "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:142.0) Gecko/20100101 Firefox/142.0"
SAFARI = (
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_5 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.5 "
    "Mobile/15E148 Safari/604.1"
)


def sign_in(user: User, *, agent: str = FIREFOX, address: str = "192.0.2.7") -> Client:
    client = Client(headers={"user-agent": agent}, REMOTE_ADDR=address)
    assert client.post("/dashboard/login/", {"username": user.email, "password": PASSWORD}).status_code == 302
    return client


def is_signed_in(client: Client) -> bool:
    return client.get(SECURITY).status_code == 200


@pytest.fixture
def desktop(alice) -> Client:
    return sign_in(alice.owner)


@pytest.fixture
def phone(alice, desktop) -> Client:
    return sign_in(alice.owner, agent=SAFARI, address="2001:db8::7")


def listed(client: Client) -> list[tuple[str, str, bool]]:
    sessions = client.get(SECURITY).context["sessions"]
    return [(session.browser, session.address, session.is_current) for session in sessions]


class TestList:
    def test_it_has_the_browser_and_the_address_of_each_session(self, desktop, phone):
        page = desktop.get(SECURITY)
        assert listed(desktop) == [("Firefox, Windows", "192.0.2.7", True), ("Safari, iPhone", "2001:db8::7", False)]
        assert [current for _browser, _address, current in listed(phone)] == [True, False]
        assert "this browser" in shown_text(page)
        assert desktop.cookies["session"].value not in page.text
        assert phone.cookies["session"].value not in page.text

    def test_those_of_others_are_not_in_it(self, desktop, bob):
        sign_in(bob.owner, agent=SAFARI)
        assert len(listed(desktop)) == 1

    def test_a_session_that_a_new_password_ended_is_not_in_it(self, alice, desktop, phone):
        fields = {
            "old_password": PASSWORD,
            "new_password1": "a better passphrase",
            "new_password2": "a better passphrase",
        }
        assert desktop.post("/dashboard/password/", fields).status_code == 302
        assert Session.objects.count() == 2
        assert listed(desktop) == [("Firefox, Windows", "192.0.2.7", True)]

    def test_a_session_that_is_over_is_not_in_it(self, alice, desktop, phone):
        Session.objects.filter(session_key=stored_key(phone.cookies["session"].value)).update(
            expire_date="2026-01-01T00:00:00Z"
        )
        assert len(listed(desktop)) == 1

    def test_a_session_of_the_version_before_is_in_it_once_it_is_used(self, alice, desktop):
        AccountSession.objects.all().delete()
        assert listed(desktop) == [("Firefox, Windows", "192.0.2.7", True)]

    def test_the_time_of_the_sign_in_stays_with_a_new_key(self, alice, desktop):
        before = desktop.get(SECURITY).context["sessions"][0]
        desktop.post(END, {"others": "1"})
        after = desktop.get(SECURITY).context["sessions"][0]
        assert (before.since, before.key == after.key) == (after.since, False)

    def test_it_is_on_the_page_of_the_staff(self, db):
        staff = User.objects.create_superuser("staff@postrider.example", PASSWORD)
        client = Client(headers={"user-agent": FIREFOX})
        client.force_login(staff)
        page = client.get("/admin/security/")
        assert [session.is_current for session in page.context["sessions"]] == [True]
        assert 'action="/admin/security/sessions/"' not in page.text


class TestEnd:
    def test_one_session_ends(self, alice, desktop, phone):
        key = stored_key(phone.cookies["session"].value)
        page = desktop.post(END, {"session": key}, follow=True)
        assert "The session was ended." in page.text
        assert (is_signed_in(desktop), is_signed_in(phone)) == (True, False)
        assert not AccountSession.objects.filter(session_id=key).exists()
        assert AuditEntry.objects.get(act="sign_out_session").actor == alice.owner.email

    def test_all_others_end_and_this_one_stays(self, alice, desktop, phone):
        # One of the version before has no row.
        AccountSession.objects.filter(session_id=stored_key(phone.cookies["session"].value)).delete()
        page = desktop.post(END, {"others": "1"}, follow=True)
        assert "All other sessions were ended." in page.text
        assert (is_signed_in(desktop), is_signed_in(phone)) == (True, False)
        assert len(listed(desktop)) == 1
        assert AuditEntry.objects.get(act="sign_out_others").actor == alice.owner.email

    def test_a_session_of_another_account_stays(self, desktop, bob):
        other = sign_in(bob.owner)
        for key in (stored_key(other.cookies["session"].value), other.cookies["session"].value, "", "\0", "x" * 5000):
            desktop.post(END, {"session": key})
        assert is_signed_in(other)
        assert not AuditEntry.objects.filter(act="sign_out_session").exists()

    def test_it_needs_a_session_and_a_post(self, desktop, phone):
        assert desktop.get(END).status_code == 405
        assert Client().post(END, {"others": "1"}).status_code == 302
        assert is_signed_in(phone)


def test_a_session_of_a_deleted_account_is_saved_without_details(alice, desktop):
    store = SessionStore(desktop.cookies["session"].value)
    store.load()
    AccountSession.objects.all().delete()
    store["_auth_user_id"] = "999999"
    store.save()
    assert not AccountSession.objects.exists()


def test_signing_out_deletes_the_details(desktop):
    assert AccountSession.objects.count() == 1
    desktop.post("/dashboard/logout/")
    assert not AccountSession.objects.exists()


@pytest.mark.parametrize(
    ("agent", "name"),
    [
        (FIREFOX, "Firefox, Windows"),
        (SAFARI, "Safari, iPhone"),
        (f"{SAFARI} CriOS/140.0", "Chrome, iPhone"),
        ("Mozilla/5.0 (X11; CrOS x86_64) AppleWebKit/537.36 Chrome/140.0 Safari/537.36", "Chrome, ChromeOS"),
        ("Mozilla/5.0 (Macintosh) AppleWebKit/537.36 Chrome/140.0 Safari/537.36 Edg/140.0", "Edge, macOS"),
        ("Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 Chrome/140.0 Mobile Safari/537.36", "Chrome, Android"),
        ("Firefox/1", "Firefox"),
        ("curl/8.5", "Unknown browser"),
        ("", "Unknown browser"),
    ],
)
def test_names_of_browsers(agent, name):
    assert browser_name(agent) == name
