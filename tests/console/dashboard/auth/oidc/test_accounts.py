"""Which account a person of the provider gets: a new one, their own, or none."""

import re
from datetime import timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from django.db.models.functions import Now
from django.test import Client
from django.utils import timezone

from config.checks import setting_errors
from console.dashboard.auth.oidc import views
from console.dashboard.auth.oidc.provider import forget_documents
from console.dashboard.auth.throttle import Throttle
from console.system_mail.models import SystemMail
from core.lib.token_bucket import RateLimit
from core.workspaces.identities import link_identity
from core.workspaces.members import invite_member, remove_member
from core.workspaces.models import AuditEntry, Identity, User
from core.workspaces.second_factor import confirm_enrolment
from core.workspaces.services import issue_api_key
from tests.conftest import PASSWORD
from tests.console.dashboard.auth.oidc.steps import SIGNED_IN, begin, come_back, is_signed_in, prepare, sign_in
from tests.console.dashboard.auth.test_second_step import code
from tests.console.dashboard.conftest import shown_text
from tests.rows import each

LINK = "/dashboard/oidc/link/"


def refusals() -> list[str]:
    return [*AuditEntry.objects.filter(act="sign_in_refused", workspace=None).values_list("about", flat=True)]


class TestNewAccount:
    def test_a_person_with_a_role_gets_one_without_a_password(self, client, forger, alice):
        assert sign_in(client, forger).url == SIGNED_IN

        user = User.objects.get(email="grace@example.com")
        assert not user.has_usable_password()
        assert (user.memberships.get().role, user.is_staff) == ("member", False)
        assert client.get("/dashboard/").context["workspace"] == alice.workspace
        entries = AuditEntry.objects.filter(workspace=alice.workspace)
        assert {"member_joined", "signed_in"} <= {*entries.values_list("act", flat=True)}

    def test_it_has_the_normalized_address_and_the_language_of_the_page(self, forger):
        sign_in(Client(headers={"accept-language": "de"}), forger, email="Grace@Example.COM")
        assert User.objects.get(email="grace@example.com").language == "de"

    def test_a_person_without_a_role_gets_none(self, client, forger, alice, settings):
        refused = sign_in(client, forger, groups=["other"])

        assert refused.status_code == 403
        assert "Your account at Example ID has no access to this page." in shown_text(refused)
        assert re.search(r"Request req_\w+", shown_text(refused))
        assert not is_signed_in(client)
        assert not User.objects.filter(email="grace@example.com").exists()
        assert refusals() == ["grace@example.com: Your account at Example ID has no access to this page."]

        # Nor does anybody if the setting says so, or with a role in a workspace that is gone.
        settings.OIDC_CREATE = "none"
        assert sign_in(client, forger).status_code == 403
        settings.OIDC_CREATE = "mapped"
        alice.workspace.delete()
        assert sign_in(client, forger).status_code == 403
        assert not User.objects.filter(email="grace@example.com").exists()

    def test_without_an_address_there_is_none(self, client, forger):
        for email in (None, "", "no address", 42, ["grace@example.com"], "x" * 300 + "@example.com"):
            assert "did not send an email address" in shown_text(sign_in(client, forger, email=email)), email
        assert User.objects.count() == 1

    def test_an_invited_person_gets_one_with_a_verified_address(self, client, forger, alice):
        invite_member(alice.workspace, email="grace@example.com", role="member", by=alice.owner)
        assert sign_in(Client(), forger, groups=[], email_verified=False).status_code == 403

        assert sign_in(client, forger, groups=[]).url == SIGNED_IN
        assert not User.objects.get(email="grace@example.com").memberships.exists()

    def test_the_claims_may_be_in_the_userinfo_response_of_the_same_person_only(self, client, forger):
        forger.claims = {"sub": "grace"}
        forger.userinfo = {"sub": "root", "email": "grace@example.com", "groups": ["mail"]}
        assert sign_in(client, forger).status_code == 403
        forger.userinfo = {"email": "grace@example.com", "email_verified": True, "groups": ["mail"]}
        assert sign_in(client, forger).url == SIGNED_IN

    def test_the_address_and_its_verification_are_of_one_document(self, client, forger, alice, settings):
        settings.OIDC_TRUST_EMAIL = True
        forger.claims = {"sub": "grace", "email": alice.owner.email, "groups": ["mail"]}
        forger.userinfo = {"email": "grace@example.com", "email_verified": True}
        sign_in(client, forger)
        assert not alice.owner.identities.exists()


class TestIdentity:
    def test_it_is_the_subject_whatever_the_address(self, client, forger, alice):
        sign_in(Client(), forger)

        assert sign_in(client, forger, email=alice.owner.email).url == SIGNED_IN
        assert client.get("/dashboard/").context["user"].email == "grace@example.com"
        assert User.objects.count() == 2

    def test_neither_another_issuer_nor_a_deactivated_account_has_access(self, client, forger):
        sign_in(Client(), forger)
        user, issuer = User.objects.filter(email="grace@example.com"), forger.issuer
        user.update(is_active=False)
        assert sign_in(client, forger).status_code == 403
        user.update(is_active=True)
        # The same subject of another issuer is another person.
        Identity.objects.update(issuer="https://other.example")
        assert sign_in(client, forger).status_code == 403
        Identity.objects.update(issuer=issuer)
        assert sign_in(client, forger).url == SIGNED_IN

    def test_two_people_with_one_address_do_not_share_an_account(self, client, forger, settings):
        sign_in(Client(), forger)
        for settings.OIDC_TRUST_EMAIL in (False, True):
            refused = sign_in(client, forger, sub="another grace")
            assert refused.status_code == 403
            assert "is linked to your email address already" in shown_text(refused)
        assert not is_signed_in(client)
        assert Identity.objects.get().subject == "grace"

    def test_a_sign_in_replaces_the_session_of_another_account(self, forger, owner, alice):
        assert sign_in(owner, forger).url == SIGNED_IN
        assert owner.get("/dashboard/").context["user"].email == "grace@example.com"
        joined = AuditEntry.objects.get(act="member_joined")
        assert joined.actor == "grace@example.com"


class TestLinkingByAddress:
    """The address of a local account, in the claims of a person without an identity here."""

    @pytest.fixture
    def as_alice(self, forger, alice):
        forger.claims = {"sub": "alice", "email": alice.owner.email, "email_verified": True, "groups": []}
        return forger

    def test_the_password_is_asked_once(self, client, as_alice, alice):
        assert sign_in(client, as_alice).url == LINK
        assert not is_signed_in(client)
        assert "alice@alice.example" in shown_text(client.get(LINK))
        assert b"Incorrect password" in client.post(LINK, {"password": "wrong"}).content
        assert not alice.owner.identities.exists()

        # Then the provider, where the person is still signed in, is asked again.
        assert client.post(LINK, {"password": PASSWORD}).context["url"] == "/dashboard/oidc/"
        assert sign_in(client, as_alice).url == SIGNED_IN
        assert alice.owner.identities.get().subject == "alice"
        assert SystemMail.objects.get(recipient=alice.owner.email).kind == "notice"
        assert AuditEntry.objects.filter(workspace=alice.workspace, act="identity_linked").exists()
        assert client.post(LINK, {"password": PASSWORD}).url == "/dashboard/login/"

    def test_the_password_is_not_guessed(self, client, as_alice):
        sign_in(client, as_alice)
        pages = [client.post(LINK, {"password": "wrong"}).content for _ in range(12)]
        assert b"Too many attempts" in pages[-1]

    def test_a_trusted_address_is_linked_at_once(self, client, as_alice, alice, settings):
        settings.OIDC_TRUST_EMAIL = True
        assert sign_in(client, as_alice).url == SIGNED_IN
        assert alice.owner.identities.get().subject == "alice"

    @each("is_trusted", [True, False])
    @each("verified", [None, False, "false", "true", 1, "1", [True], {}])
    def test_an_address_that_is_not_verified_is_not_linked(
        self, client, as_alice, alice, settings, verified, is_trusted
    ):
        settings.OIDC_TRUST_EMAIL = is_trusted
        refused = sign_in(client, as_alice, email_verified=verified)
        assert (refused.status_code, is_signed_in(client)) == (403, False)
        assert "sign in to it in another way" in shown_text(refused)
        assert not alice.owner.identities.exists()
        assert client.get(LINK).url == "/dashboard/login/"

    def test_an_account_that_has_not_confirmed_the_address_is_not_linked(self, client, as_alice, alice, settings):
        alice.workspace.is_proven = False
        alice.workspace.save()
        for settings.OIDC_TRUST_EMAIL in (True, False):
            assert sign_in(client, as_alice).status_code == 403
        assert not alice.owner.identities.exists()

    def test_without_passwords_it_is_not_linked(self, client, as_alice, alice, settings):
        sign_in(client, as_alice)
        # Passwords may end meanwhile.
        settings.PASSWORDS = "off"
        assert client.post(LINK, {"password": PASSWORD}).status_code == 200
        later = Client()
        assert sign_in(later, as_alice).status_code == 403
        assert later.post(LINK, {"password": PASSWORD}).url == "/dashboard/login/"
        assert not alice.owner.identities.exists()


class TestLinkingInTheSettings:
    def test_an_account_with_another_address_is_linked_by_its_password(self, forger, owner, alice):
        assert b"oidc/?link" in owner.get("/dashboard/security/").content
        assert sign_in(owner, forger, query="?link").url == LINK
        assert owner.post(LINK, {"password": PASSWORD}).url == "/dashboard/security/"

        assert alice.owner.identities.get().subject == "grace"
        assert "You can sign in with Example ID since" in shown_text(owner.get("/dashboard/security/"))
        client = Client()
        assert sign_in(client, forger, groups=[]).url == SIGNED_IN
        assert client.get("/dashboard/").context["user"] == alice.owner

    def test_an_identity_of_another_account_is_refused(self, forger, owner, bob):
        link_identity(bob.owner, issuer=forger.issuer, subject="grace")
        sign_in(owner, forger, query="?link")
        assert owner.post(LINK, {"password": PASSWORD}).status_code == 403
        assert Identity.objects.get().user == bob.owner

    def test_the_session_must_be_the_same(self, forger, owner, bob):
        response = prepare(owner, forger, query="?link")
        session = owner.session
        session["_auth_user_id"] = str(bob.owner.pk)
        session["_auth_user_hash"] = bob.owner.get_session_auth_hash()
        session.save()

        assert come_back(owner, **response).status_code == 403

    def test_an_account_without_a_password_must_have_signed_in_recently(self, forger, client):
        # Without a session, ?link is an ordinary sign-in.
        assert sign_in(client, forger, query="?link").url == SIGNED_IN
        Identity.objects.all().delete()
        sign_in(client, forger, query="?link", sub="new")
        monkey = client.session
        monkey["signed_in_at"] = 0
        monkey.save()
        assert b"Sign out, sign in again" in client.post(LINK).content

        monkey["signed_in_at"] = 9_999_999_999
        monkey.save()
        assert client.post(LINK).url == "/dashboard/security/"
        assert Identity.objects.get().subject == "new"


class TestStaff:
    def test_claims_make_and_unmake_staff(self, client, forger):
        assert sign_in(client, forger, site="admin", groups=["mail-admins"]).url == "/admin/"
        user = User.objects.get(email="grace@example.com")
        assert (user.is_staff, user.is_superuser) == (True, True)
        assert client.get("/admin/").status_code == 200

        assert sign_in(Client(), forger, site="admin", groups=["mail"]).status_code == 403
        user.refresh_from_db()
        assert (user.is_staff, user.is_superuser) == (False, False)
        assert client.get("/admin/").status_code == 302
        changes = AuditEntry.objects.filter(act="staff_changed", workspace=None).order_by("id")
        assert [entry.about for entry in changes] == ["grace@example.com: given", "grace@example.com: taken away"]

    def test_local_staff_stay(self, client, forger):
        user = User.objects.create_superuser("grace@example.com", PASSWORD)
        link_identity(user, issuer=forger.issuer, subject="grace")

        for groups in (["mail-admins"], []):
            assert sign_in(client, forger, site="admin", groups=groups).url == "/admin/"
        user.refresh_from_db()
        assert user.is_staff

    def test_neither_members_nor_staff_have_access_to_the_other_site(self, client, forger):
        assert sign_in(client, forger, site="admin").status_code == 403
        assert sign_in(client, forger, groups=["mail-admins"]).status_code == 403
        assert not is_signed_in(client)


class TestSecondFactor:
    @pytest.fixture
    def with_factor(self, forger, alice):
        """Alice with a second factor, and an identity."""
        link_identity(alice.owner, issuer=forger.issuer, subject="grace")
        assert confirm_enrolment(alice.owner, code=code(alice.owner, -1))
        forger.claims["groups"] = []
        return forger

    def test_that_of_the_account_is_asked_for(self, client, with_factor, alice):
        response = sign_in(client, with_factor, query="?next=/dashboard/keys/")
        target = urlsplit(response.url)
        assert (target.path, parse_qs(target.query)["next"]) == ("/dashboard/login/code/", ["/dashboard/keys/"])
        assert not is_signed_in(client)

        assert client.post(response.url, {"code": code(alice.owner)}).url == "/dashboard/keys/"
        assert client.session.get_expiry_age() <= 12 * 3600

    def test_that_of_the_provider_counts_if_its_claims_name_it_and_the_setting_permits(self, with_factor, settings):
        for claims in ({"amr": ["pwd", "mfa"]}, {"acr": "urn:example:mfa"}, {"acr": "MFA"}):
            assert sign_in(Client(), with_factor, **claims).url == SIGNED_IN, claims
        for claims in ({"amr": ["pwd"]}, {"acr": "nomfa"}, {"acr": ["mfa"]}, {"amr": []}, {"acr": 1}):
            assert sign_in(Client(), with_factor, **claims).url.startswith("/dashboard/login/code/"), claims
        settings.OIDC_SECOND_FACTOR = "local"
        assert sign_in(Client(), with_factor, amr=["mfa"]).url.startswith("/dashboard/login/code/")

    def test_staff_need_one_of_both(self, forger, settings):
        settings.STAFF_SECOND_FACTOR = "required"
        client = Client()
        sign_in(client, forger, site="admin", groups=["mail-admins"])
        assert client.get("/admin/", follow=True).redirect_chain[-1][0].endswith("/admin/security/")

        client = Client()
        sign_in(client, forger, site="admin", groups=["mail-admins"], amr=["mfa"])
        assert client.get("/admin/").status_code == 200

    def test_an_account_without_a_password_turns_one_on_after_a_recent_sign_in(self, client, forger):
        sign_in(client, forger)
        user = User.objects.get(email="grace@example.com")
        page = client.get("/dashboard/security/")
        assert b'name="password"' not in page.content
        assert b"Change password" not in page.content
        assert client.get("/dashboard/password/").status_code == 404
        fields = {"code": code(user)}
        session = client.session
        session["signed_in_at"] = 0
        session.save()
        assert b"Sign out, sign in again" in client.post("/dashboard/security/", fields).content
        session["signed_in_at"] = 9_999_999_999
        session.save()

        assert b"Recovery codes" in client.post("/dashboard/security/", fields).content


def test_members_from_claims_are_marked_and_keys_of_a_person_without_access_listed(forger, owner, alice):
    sign_in(Client(), forger)
    assert "from Example ID" in shown_text(owner.get("/dashboard/members/"))
    grace = User.objects.get(email="grace@example.com")
    key, _ = issue_api_key(alice.workspace, name="Shop", scope="full_access", created_by=grace)
    assert "no longer a member" not in shown_text(owner.get("/dashboard/keys/"))

    sign_in(Client(), forger, groups=[])

    assert "grace@example.com (no longer a member)" in shown_text(owner.get("/dashboard/keys/"))
    key.refresh_from_db()
    assert not key.is_revoked


def test_the_last_owner_stays_and_the_staff_are_told_again_after_a_day(forger, alice):
    User.objects.create_superuser("staff@postrider.example", PASSWORD)
    sign_in(Client(), forger, groups=["mail-owners"])
    remove_member(alice.owner.memberships.get())
    SystemMail.objects.all().delete()
    for _ in range(2):
        assert sign_in(Client(), forger, groups=[]).url == SIGNED_IN
        AuditEntry.objects.filter(about="grace@example.com", act="member_last_owner").update(
            created_at=Now() - timedelta(days=2)
        )

    assert SystemMail.objects.count() == 2
    for notice in SystemMail.objects.all():
        assert f'grace@example.com a role in the workspace "{alice.workspace.name}"' in notice.text


def test_a_session_ends_after_its_hours_whatever_happens_in_it(client, forger, settings):
    settings.OIDC_SESSION_HOURS = 2
    sign_in(client, forger)
    ends_at = client.session.get_expiry_date()
    assert timedelta(seconds=7170) < ends_at - timezone.now() <= timedelta(hours=2)
    assert client.get("/dashboard/keys/").status_code == 200
    assert client.session.get_expiry_date() == ends_at

    session = client.session
    session.set_expiry(timezone.now() - timedelta(seconds=1))
    session.save()
    assert client.get("/dashboard/keys/").status_code == 302


def test_sign_ins_are_counted_by_result(client, forger, settings):
    sign_in(Client(), forger)
    sign_in(Client(), forger, groups=[])
    forger.responses["/token"] = 500, {}
    sign_in(Client(), forger)

    text = client.get("/metrics").content.decode()
    for result in ("ok", "refused", "unavailable"):
        assert f'postrider_provider_sign_ins_total{{result="{result}"}} 1.0' in text


def test_sign_ins_are_limited_by_network(client, forger, monkeypatch):
    monkeypatch.setattr(views, "PROVIDER", Throttle("provider", RateLimit(0.001, 5)))
    responses = [client.get("/dashboard/oidc/") for _ in range(6)]
    assert [response.status_code for response in responses] == [302] * 5 + [429]
    assert "Too many attempts" in shown_text(responses[-1])


def test_without_a_provider_there_are_no_such_pages(client, owner, settings):
    settings.OIDC_ISSUER = ""
    for site in ("dashboard", "admin"):
        for path in ("oidc/", "oidc/callback", "oidc/link/"):
            assert client.get(f"/{site}/{path}").status_code == 404
        assert b"Sign in with" not in client.get(f"/{site}/login/").content
    assert b"Link account" not in owner.get("/dashboard/security/").content


INVALID_ROLES = {
    "{": "neither YAML nor JSON",
    "claim: groups": "must have a list",
    "[{claim: groups, value: a}]": "entry 1: write claim, value",
    "[{claim: groups, value: 42, staff: true}]": "value must be a text",
    "[{claim: groups, value: a, staff: false}]": "staff can only be true",
    "[{claim: groups, value: a, workspace: ws_1, role: member}]": "workspace must be an id",
    "[{claim: groups, value: a, workspace: ws_1, role: admin}]": "role must be owner or member",
    "[{claim: groups, value: a, staff: true, other: 1}]": "entry 1: write claim, value",
    "[a]": "entry 1: write claim, value",
    "x" * 300_000: "more than 262,144 bytes",
}


def test_an_invalid_roles_file_is_named_at_the_start_and_signs_nobody_in(client, forger, settings):
    for text, message in INVALID_ROLES.items():
        response = prepare(client, forger)
        Path(settings.OIDC_ROLES_FILE).write_text(text, encoding="utf-8")
        errors = [error for error in setting_errors() if error.startswith("OIDC_ROLES_FILE") and message in error]
        response = come_back(client, **response)
        assert (len(errors), response.status_code, is_signed_in(client)) == (1, 500, False), text[:70]


def test_invalid_settings_are_named_at_the_start(forger, settings):
    valid = {name: getattr(settings, name) for name in ("OIDC_ISSUER", "OIDC_SCOPES", "OIDC_ROLES_FILE")}
    for name, value, message in (
        ("OIDC_ISSUER", "id.example", "OIDC_ISSUER must be the https"),
        ("OIDC_SCOPES", "email", "OIDC_SCOPES must contain openid"),
        ("OIDC_ROLES_FILE", "/nonexistent", "cannot be read"),
        ("OIDC_ISSUER", "http://id.example", "OIDC_ISSUER must be the https"),
    ):
        settings.OIDC_ALLOW_PRIVATE_NETWORKS = value != "http://id.example"
        setattr(settings, name, value)
        assert [error for error in setting_errors() if message in error], value
        setattr(settings, name, valid[name])


class TestEmailDomain:
    @pytest.fixture
    def by_domain(self, forger, configure, alice):
        rule = {"claim": "email_domain", "value": "Example.com", "workspace": alice.workspace.id, "role": "member"}
        configure(forger.issuer, rule)
        forger.claims = {"sub": "grace", "email": "grace@example.com", "email_verified": True}
        return forger

    def test_a_verified_address_matches(self, by_domain):
        refused = (
            {"email_verified": None},
            {"email_verified": False},
            {"email_verified": "true"},
            # A claim of this name is ignored, and a subdomain is another domain.
            {"email": "grace@evil.example", "email_domain": "example.com"},
            {"email_verified": False, "email_domain": "example.com"},
            {"email": "grace@sub.example.com"},
        )
        assert [claims for claims in refused if sign_in(Client(), by_domain, **claims).status_code != 403] == []
        assert sign_in(Client(), by_domain).url == SIGNED_IN


def test_a_claim_may_be_one_text_and_the_highest_role_of_all_matching_entries_wins(client, forger):
    assert sign_in(client, forger, groups="mail").url == SIGNED_IN
    assert sign_in(Client(), forger, sub="other", email="o@example.com", groups="mail-x").status_code == 403
    sign_in(client, forger, groups=["mail-owners", "mail"])
    assert User.objects.get(email="grace@example.com").memberships.get().role == "owner"


def test_a_claim_that_only_some_accounts_have_gives_roles(client, forger, configure, alice):
    """Google sends hd for accounts of a company only."""
    configure(forger.issuer, {"claim": "hd", "value": "example.com", "workspace": alice.workspace.id, "role": "member"})
    assert sign_in(Client(), forger, sub="private", email="p@example.com").status_code == 403
    assert sign_in(Client(), forger, sub="other", email="o@example.com", hd="other.example").status_code == 403
    assert not User.objects.filter(email__in=["p@example.com", "o@example.com"]).exists()
    assert sign_in(client, forger, hd="example.com").url == SIGNED_IN


def test_the_scope_groups_is_left_out_if_the_provider_does_not_know_it(client, forger):
    assert begin(client)["scope"] == "openid email profile groups"
    forget_documents()
    forger.metadata = {"scopes_supported": ["openid", "email", "profile"]}
    assert begin(client)["scope"] == "openid email profile"


def test_absent_groups_are_not_empty_ones(client, forger):
    sign_in(Client(), forger)
    member = User.objects.get(email="grace@example.com").memberships

    refused = sign_in(client, forger, groups=None)
    assert "did not send the claims that your access depends on" in shown_text(refused)
    assert (member.count(), is_signed_in(client)) == (1, False)

    assert "has no access" in shown_text(sign_in(client, forger, groups=[]))
    assert member.count() == 0
