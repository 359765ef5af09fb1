"""`postrider apply` with a management key and a list of workspaces."""

import json
from uuid import uuid4

import pytest

from tests.clients.cli import CommandLine

pytestmark = pytest.mark.stack

FILE = """\
workspaces:
  - name: {name} one
    plan: pro
    group: customers
    ownerEmail: ada@{name}.example
    domains: &domains
      - name: {name}.example
    apiKeys:
      - name: Website
        scope: sending_access
        limits:
          domains: [{name}.example]
  - name: {name} two
    domains: *domains
    webhooks:
      - url: https://example.com/{name}
        events: [bounced]
"""


@pytest.fixture
def platform(service, cli):
    return CommandLine({**cli.environment, "POSTRIDER_API_KEY": service.management_key}, cli.home)


@pytest.fixture
def name(cli):
    name = uuid4().hex
    (cli.home / "postrider.yaml").write_text(FILE.format(name=name))
    return name


def workspaces_of(manager, name):
    return sorted((one for one in manager.workspaces.list() if name in one.name), key=lambda one: one.name)


def test_workspaces_are_created_with_their_objects_and_a_second_run_changes_nothing(platform, manager, name):
    assert platform.run("apply", "--dry-run").code == 8
    assert workspaces_of(manager, name) == []
    changes = platform.run("apply", "--yes").json["changes"]
    assert [(one["workspace"].removeprefix(name), one["kind"]) for one in changes] == [
        (" one", "workspace"), (" one", "domain"), (" one", "API key"),
        (" two", "workspace"), (" two", "domain"), (" two", "webhook"),
    ]  # fmt: skip
    one, two = workspaces_of(manager, name)
    assert (one.plan, one.group, two.group) == ("pro", "customers", "")
    assert [invitation.email for invitation in manager.workspaces.invitations.list(one.id)] == [f"ada@{name}.example"]
    (key,) = (key for key in manager.workspaces.keys.list(one.id) if key.revoked_at is None)
    assert (key.name, key.limits.domains) == ("Website", [f"{name}.example"])
    assert platform.run("apply", "--yes").json["changes"] == []
    assert platform.run("apply", "--dry-run", "--prune").code == 0
    # No temporary key stays active.
    for workspace in (one, two):
        temporary = [key for key in manager.workspaces.keys.list(workspace.id) if key.name == "postrider apply"]
        assert {key.scope for key in temporary} == {"full_access", "read_only"}
        assert all(key.revoked_at for key in temporary)


def test_a_deleted_workspace_is_not_the_one_in_the_file(platform, manager, name):
    deleted = manager.workspaces.create(name=f"{name} one")
    manager.workspaces.delete(deleted.id)
    assert platform.run("apply", "--yes").json["changes"][0]["action"] == "create"
    assert len(workspaces_of(manager, f"{name} one")) == 2


def test_a_workspace_is_renamed_by_its_id_and_its_plan_changed(platform, manager, name):
    workspace = manager.workspaces.create(name=f"{name} old", plan="free")
    text = f"workspaces:\n  - id: {workspace.id}\n    name: {name} new\n    plan: pro\n"
    (change,) = platform.run("apply", "-f", "-", "--yes", stdin=text).json["changes"]
    assert change["fields"] == {
        "name": {"from": f"{name} old", "to": f"{name} new"},
        "plan": {"from": "free", "to": "pro"},
    }
    assert [(one.name, one.plan) for one in workspaces_of(manager, name)] == [(f"{name} new", "pro")]


REFUSED = [
    ("name: Shop\n", 1, "requires a list"),
    ("workspaces:\n  - name: {name}\n", 2, "2 workspaces have this name"),
    ("workspaces:\n  - id: ws_unknown\n", 2, "no workspace with this id"),
    ("workspaces:\n  - id: {id}\n    group: others\n", 3, "cannot be changed"),
    ("workspaces:\n  - name: a\n  - name: a\n", 3, "two workspaces with this name"),
    ("workspaces:\n  - plan: pro\n", 2, "needs a name"),
    ("workspaces: {{}}\n", 1, "must be a list"),
    ("\nworkspaces: []\n", 2, "needs at least one workspace"),
    ("workspaces:\n  - name: a\n    plan: gold\n  - name: b\n    domains: [{{name: x}}]\n", 5, "not a domain name"),
]


def test_a_file_that_does_not_fit_the_service_is_refused(platform, manager, name):
    first = manager.workspaces.create(name=name)
    manager.workspaces.create(name=name)
    before = list(manager.workspaces.list())
    for text, line, message in REFUSED:
        result = platform.run("apply", "-f", "-", "--yes", stdin=text.format(name=name, id=first.id))
        error = json.loads(result.output)["errors"][-1]
        assert (result.code, error["line"], message in error["message"]) == (1, line, True), (text, error)
    assert list(manager.workspaces.list()) == before
