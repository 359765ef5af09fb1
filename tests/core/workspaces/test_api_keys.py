import json
import logging
from datetime import UTC, datetime

import pytest
from django.core.management import CommandError, call_command

from core.workspaces.api import authentication
from core.workspaces.api_key_secrets import parse_key
from core.workspaces.errors import PlanLimitReached
from core.workspaces.models import ApiKey
from core.workspaces.services import issue_api_key, revoke_api_key
from tests.conftest import Api, code_of, make_key
from tests.rows import each

pytestmark = pytest.mark.django_db


def test_a_key_authenticates_its_workspace(alice):
    body = Api(make_key(alice.workspace, "sending_access")).get("/me").json()
    assert body["workspace"] == {"id": alice.workspace.id, "name": "alice", "plan": "enterprise"}
    assert body["key"]["scope"] == "sending_access"
    assert body["quota"]["limit"] is None


def test_me_returns_the_quota_of_the_plan(alice):
    alice.workspace.plan = "free"
    alice.workspace.save(update_fields=["plan"])
    quota = Api(make_key(alice.workspace)).get("/me").json()["quota"]
    assert (quota["limit"], quota["used"], quota["remaining"]) == (500, 0, 500)
    assert datetime.fromisoformat(quota["resetsAt"]) > datetime.now(UTC)
    assert quota["resetsAt"].endswith("-01T00:00:00.000Z")


def test_a_key_is_stored_only_as_a_keyed_hash(alice):
    text = make_key(alice.workspace)
    row = ApiKey.objects.values().get()
    secret = parse_key(text).secret
    assert secret not in json.dumps(row, default=str)
    assert row["last_four"] == text[-4:]


def other_secret(text: str) -> str:
    """Return a well-formed key with the same id and another secret."""
    from core.workspaces.api_key_secrets import new_secret

    return new_secret(parse_key(text).id).text


@each(
    "change",
    [
        lambda key: key[:-1],
        lambda key: key[:-1] + ("0" if key[-1] != "0" else "1"),
        lambda key: key.replace("pr_", "xx_"),
        other_secret,
        lambda _: "nonsense",
        lambda key: key + "é",
    ],
)
def test_a_wrong_key_is_401(alice, change):
    assert code_of(Api(change(make_key(alice.workspace))).get("/me")) == (401, "invalid_api_key")


def test_an_incomplete_key_is_called_so(alice):
    response = Api(make_key(alice.workspace)[:-1]).get("/me")
    assert "incomplete" in response.json()["detail"]
    assert "begins with pr_" in Api("nonsense").get("/me").json()["detail"]


def test_basic_authentication_is_refused(alice):
    response = Api().get("/me", Authorization="Basic YTpi")
    assert code_of(response) == (401, "invalid_api_key")


def test_a_revoked_key_ends_within_a_second(alice):
    text = make_key(alice.workspace)
    assert Api(text).get("/me").status_code == 200
    revoke_api_key(ApiKey.objects.get())
    entries = authentication.cache._entries
    entries.update({key_id: (key, read_at - 1.0) for key_id, (key, read_at) in entries.items()})
    assert code_of(Api(text).get("/me")) == (401, "revoked_api_key")


def test_only_the_correct_secret_reveals_that_a_key_was_revoked(alice):
    text = make_key(alice.workspace)
    revoke_api_key(ApiKey.objects.get())
    assert code_of(Api(other_secret(text)).get("/me")) == (401, "invalid_api_key")


def test_last_use_is_recorded_at_most_once_a_minute(alice):
    api = Api(make_key(alice.workspace))
    api.get("/me")
    first = ApiKey.objects.get().last_used_at
    authentication.cache.clear()
    api.get("/me")
    assert first is not None
    assert ApiKey.objects.get().last_used_at == first


def test_a_workspace_has_100_keys_and_no_more(alice):
    for _ in range(100):
        issue_api_key(alice.workspace, name="k", scope="read_only")
    with pytest.raises(PlanLimitReached):
        issue_api_key(alice.workspace, name="k", scope="read_only")
    revoke_api_key(ApiKey.objects.first())
    issue_api_key(alice.workspace, name="k", scope="read_only")


def test_the_commands_create_a_workspace_and_a_key(capsys):
    call_command("create_workspace", name="N", email="New@example.org", password="a long password", plan="free")
    workspace_id = json.loads(capsys.readouterr().out)["workspaceId"]
    call_command(
        "create_api_key", workspace=workspace_id, name="k", scope="full_access", expires="2099-01-01T00:00:00Z"
    )
    created = json.loads(capsys.readouterr().out)
    assert Api(created["key"]).get("/me").json()["key"]["id"] == created["id"]


@each("expires", ["tomorrow", "9999-12-31T23:59:59-12:00", "2099-02-30T00:00:00Z"])
def test_the_command_refuses_an_invalid_expiry(alice, expires):
    with pytest.raises(CommandError, match="is not a time such as"):
        call_command("create_api_key", workspace=alice.workspace.id, name="k", scope="read_only", expires=expires)
    assert not ApiKey.objects.exists()


def test_the_commands_explain_a_name_that_is_too_long(alice):
    account = {"email": "new@example.org", "password": "a long password", "plan": "free"}
    for command, options in (
        ("create_workspace", account),
        ("create_api_key", {"workspace": alice.workspace.id, "scope": "read_only"}),
    ):
        with pytest.raises(CommandError, match="no more than 100 characters"):
            call_command(command, name="x" * 101, **options)


def test_the_command_explains_that_no_further_key_is_possible(alice):
    for _ in range(100):
        issue_api_key(alice.workspace, name="k", scope="read_only")
    with pytest.raises(CommandError, match=r"at most 100 API keys\. Revoke one first"):
        call_command("create_api_key", workspace=alice.workspace.id, name="k", scope="read_only")


def test_a_key_never_reaches_the_log(alice, caplog, capsys):
    text = make_key(alice.workspace)
    from config.logs import JsonFormatter

    record = logging.makeLogRecord({"msg": "got %s and %s", "args": (f"Bearer {text}", "redis://:pass@host/0")})
    line = JsonFormatter().format(record)
    assert text not in line
    assert "pass@" not in line
    Api(text).get("/me")
    assert text not in caplog.text
