import re
from datetime import UTC, datetime, timedelta

from django.contrib.admin.models import LogEntry
from django.contrib.sessions.models import Session

from core.workspaces import services
from core.workspaces.api import authentication
from core.workspaces.key_limits import KeyLimits
from core.workspaces.models import ApiKey
from tests.conftest import Api, make_key

KEY = re.compile(r"pr_[0-9A-Za-z]{22}_[0-9A-Za-z]{49}")
FORM = {"name": "Shop", "scope": "sending_access", "lifetime": "", "expires_at": ""}


def create(owner, **fields: str):
    return owner.post("/dashboard/keys/add/", {**FORM, **fields})


def test_is_shown_once_and_works(owner, alice):
    page = create(owner)

    key = KEY.search(page.content.decode())[0]
    answer = Api(key).get("/me").json()
    assert answer["workspace"]["id"] == alice.workspace.id
    assert (answer["key"]["name"], answer["key"]["scope"]) == ("Shop", "sending_access")
    assert "no-store" in page["Cache-Control"]
    for path in ("/dashboard/keys/", "/dashboard/", "/dashboard/keys/add/"):
        assert key[-20:] not in owner.get(path).text
    secret = key.split("_")[2][:43]
    stored = [str(session.get_decoded()) for session in Session.objects.all()]
    stored += [f"{entry.object_repr} {entry.change_message}" for entry in LogEntry.objects.all()]
    stored += [str(vars(row)) for row in ApiKey.objects.all()]
    stored += [str(page.cookies), str(owner.cookies)]
    assert LogEntry.objects.count() == 1
    assert not [text for text in stored if secret in text]


def test_may_expire(owner):
    expires_at = datetime.now(UTC) + timedelta(days=30)
    create(owner, name="custom", lifetime="custom", expires_at=expires_at.strftime("%Y-%m-%dT%H:%M"))
    before = datetime.now(UTC)
    create(owner, name="chosen", lifetime="90")
    create(owner, name="ignored", expires_at="2030-01-01T00:00")

    found = dict(ApiKey.objects.values_list("name", "expires_at"))
    assert found["custom"] == expires_at.replace(second=0, microsecond=0)
    assert before <= found["chosen"] - timedelta(days=90) <= datetime.now(UTC)
    assert found["ignored"] is None


def test_its_creator_is_shown(owner, alice):
    create(owner)
    make_key(alice.workspace)

    assert owner.get("/dashboard/keys/").content.decode().count(f"<bdi>{alice.owner.email}</bdi>") == 1
    assert dict(ApiKey.objects.values_list("name", "created_by")) == {"Shop": alice.owner.pk, "test": None}
    # A key outlives the account of its creator.
    alice.owner.delete()
    assert set(ApiKey.objects.values_list("created_by", flat=True)) == {None}


def test_a_key_that_only_reads_has_a_sample_that_reads(owner):
    samples = create(owner, scope="read_only").context["samples"]

    assert [one.label for one in samples] == ["curl"]
    assert "/v1/emails " in samples[0].text


def test_refuses_invalid_values(owner):
    for fields in (
        {"name": ""},
        {"name": "x" * 101},
        {"scope": "everything"},
        {"lifetime": "custom", "expires_at": "2020-01-01T00:00"},
        {"lifetime": "custom", "expires_at": ""},
        {"lifetime": "custom", "expires_at": "soon"},
        {"lifetime": "31"},
    ):
        assert create(owner, **fields).context["form"].errors, fields
    for fields, name in (
        ({"domains": "no_domain"}, "domains"),
        ({"networks": "203.0.113.7/24"}, "networks"),
        ({"requests_per_second": "1001"}, "requests_per_second"),
        ({"requests_per_second": "many"}, "requests_per_second"),
        ({"scope": "full_access", "domains": "shop.example"}, "domains"),
        ({"scope": "read_only", "templates": "welcome"}, "templates"),
    ):
        response = create(owner, **fields)
        assert [*response.context["form"].errors] == [name], fields
        assert '<details class="pr-more" open>' in response.text
    assert '<details class="pr-more">' in owner.get("/dashboard/keys/add/").text
    assert not ApiKey.objects.exists()


def test_a_full_plan_is_a_form_error(owner, monkeypatch):
    monkeypatch.setattr(services, "MAX_KEYS", 0)

    assert "Revoke one" in create(owner).content.decode()
    assert not ApiKey.objects.exists()


def test_revoking_refuses_further_requests(owner, alice):
    key = make_key(alice.workspace)
    url = f"/dashboard/keys/{ApiKey.objects.get().id}/revoke/"

    assert owner.get(url).status_code == 200
    assert ApiKey.objects.get().revoked_at is None
    assert Api(key).get("/me").status_code == 200
    assert owner.post(url).url == "/dashboard/keys/"

    authentication.cache.clear()
    assert Api(key).get("/me").json()["code"] == "revoked_api_key"
    assert "revoked" in owner.get("/dashboard/keys/").content.decode()


def test_the_list_shows_states_and_last_four(owner, alice):
    key = make_key(alice.workspace)
    make_key(alice.workspace, expires_at=datetime.now(UTC) - timedelta(days=1))

    page = owner.get("/dashboard/keys/").content.decode()

    assert f"pr_…{key[-4:]}" in page
    assert "expired" in page
    assert "active" in page
    for path in ("change", "delete", "history"):
        assert owner.get(f"/dashboard/keys/{ApiKey.objects.first().id}/{path}/").status_code == 404, path


def test_the_smtp_settings_are_beside_a_key_that_may_send(owner, settings):
    settings.PUBLIC_URL, settings.SUBMISSION_PORTS = "https://mail.example.com", [587, 2525]
    settings.SUBMISSION_TLS_CERT, settings.SUBMISSION_TLS_PORTS = "cert.pem", [465]

    page = create(owner).content.decode()

    assert "<code>mail.example.com</code>" in page
    assert "STARTTLS (587, 2525), TLS (465)" in page
    assert 'id="smtp"' not in create(owner, scope="read_only").content.decode()
    settings.SUBMISSION_PORTS = []
    assert "pr_" in create(owner).text


def test_without_a_certificate_the_overview_shows_unencrypted_smtp(owner):
    page = owner.get("/dashboard/").content.decode()

    assert "<code>127.0.0.1</code>" in page
    assert "None (this machine only)" in page


def test_limits_are_set_in_the_form_and_shown(owner):
    page = create(
        owner, domains="shop.example, blog.example", networks="203.0.113.0/24 2001:db8::/32", templates="welcome",
        requests_per_second="5",
    ).content.decode()  # fmt: skip

    key = ApiKey.objects.get()
    assert key.limits == KeyLimits(
        ("shop.example", "blog.example"), ("203.0.113.0/24", "2001:db8::/32"), ("welcome",), requests_per_second=5
    )
    detail = owner.get(f"/dashboard/keys/{key.id}/").content.decode()
    for shown in (page, detail):
        for text in ("blog.example", "2001:db8::/32", "welcome", "Requests per second"):
            assert text in shown
    assert "limited" in owner.get("/dashboard/keys/").text
    key.delete()
    create(owner)
    assert "Client networks" not in owner.get(f"/dashboard/keys/{ApiKey.objects.get().id}/").text
