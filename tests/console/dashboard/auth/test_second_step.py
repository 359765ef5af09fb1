"""Two-factor sign-in: throttling, codes, new session keys, and mandatory second factors for staff."""

import time

import pytest
from django.test import Client

from console.dashboard.auth.throttle import SIGN_IN, throttle_network
from core.workspaces.models import User
from core.workspaces.second_factor import begin_enrolment, code_at, confirm_enrolment
from tests.conftest import PASSWORD
from tests.console.dashboard.auth.test_sign_in import is_signed_in, sign_in
from tests.console.dashboard.conftest import signed_in

CODE = "/dashboard/login/code/"
SECURITY = "/dashboard/security/"


def code(user, off=0) -> str:
    return code_at(begin_enrolment(user), step=int(time.time()) // 30 + off)


@pytest.fixture
def guarded(alice):
    """Alice with a second factor; the current codes are unused."""
    codes = confirm_enrolment(alice.owner, code=code(alice.owner, -1))
    alice.owner.recovery = codes
    return alice.owner


class TestTheCode:
    def test_signs_in_after_the_password(self, client, guarded):
        step = sign_in(client, guarded.email, next="/dashboard/keys/")
        assert step.url == f"{CODE}?next=%2Fdashboard%2Fkeys%2F"
        assert not is_signed_in(client)
        assert client.get(step.url).status_code == 200

        assert not guarded.memberships.get().workspace.audit.filter(act="signed_in").exists()

        assert client.post(step.url, {"code": code(guarded)}).url == "/dashboard/keys/"
        assert is_signed_in(client)
        assert guarded.memberships.get().workspace.audit.filter(act="signed_in").count() == 1

    def test_is_not_accepted_without_the_password(self, client, guarded):
        sign_in(client, guarded.email, "wrong")

        assert client.post(CODE, {"code": code(guarded)}).url == "/dashboard/login/"
        assert not is_signed_in(client)

    def test_must_be_entered_within_ten_minutes(self, client, guarded):
        sign_in(client, guarded.email)
        session = client.session
        session["second_step"] = {**session["second_step"], "at": time.time() - 601}
        session.save()

        assert client.post(CODE, {"code": code(guarded)}).url == "/dashboard/login/"

    def test_a_password_changed_meanwhile_ends_the_step(self, client, guarded):
        sign_in(client, guarded.email)
        guarded.set_password("a better battery")
        guarded.save()

        assert client.post(CODE, {"code": code(guarded)}).url == "/dashboard/login/"

    def test_guessing_is_throttled(self, client, guarded):
        sign_in(client, guarded.email)

        statuses = [client.post(CODE, {"code": "000000"}).status_code for _ in range(6)]

        assert statuses == [200] * 5 + [429]
        assert client.post(CODE, {"code": code(guarded)}).status_code == 429

    def test_both_steps_change_the_session(self, client, guarded):
        client.get("/dashboard/login/")
        session = client.session
        session["planted"] = True
        session.save()
        keys = [session.session_key]

        sign_in(client, guarded.email)
        keys.append(client.session.session_key)
        client.post(CODE, {"code": code(guarded)})
        keys.append(client.session.session_key)

        assert len(set(keys)) == 3

    def test_may_be_a_recovery_code_and_never_redirects_to_another_site(self, guarded):
        targets = ("https://evil.example/", "//evil.example", "/\\evil.example", "javascript:x")
        for target, recovery in zip(targets, guarded.recovery, strict=False):
            client = Client()
            sign_in(client, guarded.email)
            assert client.post(f"{CODE}?next={target}", {"code": recovery}).url == "/dashboard/", target


class TestTheSecurityPage:
    def turn_on(self, client, user, **fields):
        return client.post(SECURITY, {"code": code(user), "password": PASSWORD, **fields})

    def test_turns_it_on_and_shows_the_recovery_codes_once(self, owner, alice):
        elsewhere = signed_in(alice.owner)
        assert b"Two-factor authentication" in owner.get(SECURITY).content

        page = self.turn_on(owner, alice.owner)

        codes = page.context["codes"].split()
        assert len(codes) == 10
        assert all(code.encode() in page.content for code in codes)
        assert is_signed_in(owner)
        assert not is_signed_in(elsewhere)
        assert codes[0].encode() not in owner.get(SECURITY).content

    def test_requires_the_code_and_the_password_and_turns_it_off_with_a_code(self, owner, alice, client):
        for fields in ({"code": "000000"}, {"password": "wrong"}):
            self.turn_on(owner, alice.owner, **fields)
            assert User.objects.get(pk=alice.owner.pk).second_factor_at is None, fields
        page = self.turn_on(owner, alice.owner)
        owner.post(SECURITY, {"code": "000000", "password": PASSWORD})
        assert User.objects.get(pk=alice.owner.pk).second_factor_at

        owner.post(SECURITY, {"code": page.context["codes"].split()[0], "password": PASSWORD})

        assert User.objects.get(pk=alice.owner.pk).second_factor_at is None
        assert sign_in(client, alice.owner.email).url == "/dashboard/"


class TestStaff:
    @pytest.fixture
    def staff_user(self, settings, db):
        settings.STAFF_SECOND_FACTOR = "required"
        return User.objects.create_superuser("staff@postrider.example", PASSWORD)

    def test_without_a_second_factor_sees_only_the_setup_page(self, staff_user):
        client = signed_in(staff_user)

        assert client.get("/admin/workspaces/user/").status_code == 302
        assert client.get("/admin/", follow=True).redirect_chain[-1][0] == "/admin/security/"
        page = client.get("/admin/security/")
        assert b"Set it up to continue" in page.content
        assert client.post("/admin/security/", {"code": code(staff_user), "password": PASSWORD}).status_code == 200
        assert client.get("/admin/workspaces/user/").status_code == 200

    def test_with_a_second_factor_signs_in_in_two_steps(self, staff_user, client):
        confirm_enrolment(staff_user, code=code(staff_user, -1))
        fields = {"username": staff_user.email, "password": PASSWORD, "next": "/admin/"}

        step = client.post("/admin/login/", fields)
        assert step.url == "/admin/login/code/?next=%2Fadmin%2F"
        assert client.get("/admin/workspaces/user/").status_code == 302
        client.post(step.url, {"code": code(staff_user)})

        assert client.get("/admin/workspaces/user/").status_code == 200

    def test_turns_off_the_factor_of_a_lost_phone(self, staff, guarded):
        fields = {"action": "end_second_factors", "_selected_action": str(guarded.pk)}

        assert staff.post("/admin/workspaces/user/", fields).status_code == 302

        guarded.refresh_from_db()
        assert guarded.second_factor_at is None


class TestThrottles:
    def test_guessing_at_an_account_is_throttled_also_if_it_does_not_exist(self, client, alice):
        for email in ("Alice@alice.example", "nobody@alice.example"):
            statuses = [sign_in(client, email, "wrong").status_code for _ in range(11)]
            assert statuses == [200] * 10 + [429], email
        refused = sign_in(client, alice.owner.email)
        assert int(refused["Retry-After"]) <= 20
        assert b"Too many attempts" in refused.content

    def test_attempts_from_other_browsers_do_not_throttle_a_known_browser(self, client, alice):
        mine = Client()
        sign_in(mine, alice.owner.email)
        mine.post("/dashboard/logout/")
        for _ in range(11):
            sign_in(client, alice.owner.email, "wrong")

        assert sign_in(client, alice.owner.email).status_code == 429
        assert sign_in(mine, alice.owner.email).url == "/dashboard/"

    def test_a_browser_is_known_only_for_the_account_it_signed_in_to(self, alice, bob):
        client = Client()
        sign_in(client, bob.owner.email)
        statuses = [sign_in(client, alice.owner.email, "wrong").status_code for _ in range(11)]

        assert statuses[-1] == 429

    def test_one_network_is_throttled_across_accounts(self, rf):
        request = rf.post("/dashboard/login/", REMOTE_ADDR="192.0.2.1")

        waits = [throttle_network(request, SIGN_IN) for _ in range(31)]

        assert waits[:30] == [0] * 30
        assert waits[30] > 0
        assert throttle_network(rf.post("/", REMOTE_ADDR="192.0.2.2"), SIGN_IN) == 0

    def test_signing_up_is_throttled(self, client, db):
        statuses = [client.post("/dashboard/signup/", {"email": "x"}).status_code for _ in range(11)]

        assert statuses == [200] * 10 + [429]

    def test_a_form_of_another_site_is_refused(self, alice):
        client = Client(enforce_csrf_checks=True)
        client.force_login(alice.owner)
        forms = (
            "login/", "login/code/", "signup/", "reset/", "reset/new/", "proof/", "invitation/", "members/invite/",
            "members/leave/", "members/withdraw/", "security/", "logout/", "proof/again/",
        )  # fmt: skip
        assert [path for path in forms if client.post(f"/dashboard/{path}", {}).status_code != 403] == []


def test_the_staff_front_page_shows_the_metrics(staff, alice):
    from config.heartbeats import live_workers, send_heartbeat

    send_heartbeat("Three refusals in a row.")

    page = staff.get("/admin/").content.decode()

    assert "Three refusals in a row." in page
    assert any(worker.trouble for worker in live_workers())
    for title in ("Queue", "Oldest due entry", "Workers", "System emails", "Workspaces"):
        assert title in page


def test_an_unknown_account_takes_as_long_as_a_known_one(client, alice, monkeypatch):
    from django.contrib.auth.hashers import Argon2PasswordHasher

    calls, encode = [], Argon2PasswordHasher.encode
    monkeypatch.setattr(Argon2PasswordHasher, "encode", lambda *a: calls.append(1) or encode(*a))

    sign_in(client, "nobody@alice.example", "wrong")

    # One hash, as for a known account.
    assert calls == [1]
