"""`postrider apply`, with a file that describes one workspace (docs/decisions/0099)."""

import itertools
import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import yaml
from postrider_client import Postrider
from postrider_client.cli.configuration.kinds import normal_rules
from postrider_client.cli.configuration.source import read_configuration

from core.workspaces.recipients.rules import read_rules
from tests.clients.cli import CommandLine, Result
from tests.clients.faulty import LOSE, proxy

pytestmark = pytest.mark.stack

FILE = """\
name: Shop
domains:
  - name: Mail.{name}.example
    tls: required
  - name: bücher.{name}.example
templates:
  - alias: welcome
    name: Welcome
    subject: Hello {{{{ name }}}}
    htmlFile: welcome.html
    strictVariables: true
webhooks:
  - url: https://example.com/events?token=${{HOOK_TOKEN}}
    events: [email.bounced, complained]
    active: false
apiKeys:
  - name: Website
    scope: sending_access
"""
TOKEN = "token-4f1c9b22"
# Fields that the service changes by itself.
CHANGING = ("lastUsedAt", "lastCheckedAt", "verifiedAt", "status", "records")


@dataclass(frozen=True)
class Shop:
    """A new workspace with the command line, and a client with its key."""

    cli: CommandLine
    client: Postrider
    workspace_id: str

    @property
    def path(self) -> Path:
        return self.cli.home / "postrider.yaml"

    def apply(self, *arguments: str, text: str = "", **variables: str) -> Result:
        if text:
            self.path.write_text(text)
        return self.cli.run("apply", *arguments, **{"HOOK_TOKEN": TOKEN, **variables})

    def initial(self) -> Any:
        """Replace the file by the one of --init, and return its content."""
        self.path.unlink()
        assert self.apply("--init").code == 0
        return yaml.safe_load(self.path.read_text())

    def plan(self, *arguments: str, text: str = "") -> list[tuple[str, str, str]]:
        """Return action, kind and name of each change that a dry run shows."""
        result = self.apply("--dry-run", *arguments, text=text)
        changes = json.loads(result.output)["changes"]
        assert result.code == (8 if changes else 0), result.errors
        return [(one["action"], one["kind"], one["name"]) for one in changes]

    def state(self) -> Any:
        """Return all objects of the workspace, without the results of checks and uses."""
        client, keys = self.client, self.client.workspaces.keys.list(self.workspace_id)
        lists = (
            client.domains.list(),
            client.templates.list(),
            client.streams.list(),
            client.webhooks.list(),
            client.inbound.routes.list(),
            client.inbound.blocks.list(),
            keys,
        )
        workspace = client.workspaces.get(self.workspace_id)
        return workspace, [[{**one.raw, **dict.fromkeys(CHANGING)} for one in items] for items in lists]


@pytest.fixture
def shop(service, manager, cli):
    workspace = manager.workspaces.create(name="New", plan="enterprise")
    key = manager.workspaces.keys.create(workspace.id, name="apply", scope="workspace_admin").key
    (cli.home / "welcome.html").write_text("<p>Welcome,\n{{ name }}</p>\n")
    name = uuid4().hex
    (cli.home / "postrider.yaml").write_text(FILE.format(name=name))
    with Postrider(key, base_url=service.stack.url) as client:
        yield Shop(CommandLine({**cli.environment, "POSTRIDER_API_KEY": key}, cli.home), client, workspace.id)


def test_an_empty_workspace_is_made_to_match_the_file_and_a_second_run_changes_nothing(shop):
    first = shop.apply("--yes")
    assert [(one["kind"], one["action"], one["status"]) for one in first.json["changes"]] == [
        ("workspace", "update", "done"),
        ("domain", "create", "done"),
        ("domain", "create", "done"),
        ("template", "create", "done"),
        ("webhook", "create", "done"),
        ("API key", "create", "done"),
    ]
    (webhook,), (template,) = shop.client.webhooks.list(), shop.client.templates.list()
    assert (webhook.url, webhook.events, webhook.active) == (
        f"https://example.com/events?token={TOKEN}", ["bounced", "complained"], False
    )  # fmt: skip
    template = shop.client.templates.get(template.id)
    assert (template.html_content, template.strict_variables) == ("<p>Welcome,\n{{ name }}</p>\n", True)
    assert {(one.name.partition(".")[0], one.tls) for one in shop.client.domains.list()} == {
        ("mail", "required"), ("xn--bcher-kva", "opportunistic")
    }  # fmt: skip
    # Secrets are shown once, and those of the environment never.
    hook, key = first.json["secrets"]
    assert (hook["kind"], hook["secret"][:6], key["name"]) == ("webhook", "whsec_", "Website (sending_access)")
    with Postrider(key["secret"], base_url=shop.cli.environment["POSTRIDER_URL"]) as client:
        assert client.me().key.scope == "sending_access"
    assert TOKEN not in first.output + first.errors
    before = shop.state()
    assert shop.apply("--yes").json == {"changes": [], "unmanaged": [], "secrets": []}
    assert shop.apply("--dry-run").code == 0
    assert shop.state() == before


def test_three_runs_at_once_create_each_object_once(shop):
    with ThreadPoolExecutor(3) as pool:
        results = [*pool.map(lambda _: shop.cli.process("apply", "--yes", HOOK_TOKEN=TOKEN), range(3))]
    assert [(result.code, result.errors) for result in results if result.code] == []
    assert sum(len(json.loads(result.output)["secrets"]) for result in results) == 2
    client = shop.client
    lists = (client.domains.list(), client.templates.list(), client.webhooks.list())
    assert [len([*items]) for items in lists] == [2, 1, 1]
    assert [key.name for key in client.workspaces.keys.list(shop.workspace_id)].count("Website") == 1
    assert shop.plan() == []


def test_duplicates_are_reported_and_deleted_only_with_prune(shop):
    shop.apply("--yes")
    url = f"https://example.com/events?token={TOKEN}"
    shop.client.webhooks.create(url=url, events=["bounced"])
    shop.client.webhooks.create(url="https://example.com/other", events=["bounced"])
    unmanaged = json.loads(shop.apply("--dry-run").output)["unmanaged"]
    found = {(one["action"], one["name"], one.get("duplicate", False)) for one in unmanaged}
    assert found == {("keep", "https://example.com/events?…", True), ("keep", "https://example.com/other", False)}
    assert shop.apply("--yes", "--prune").code == 0
    (webhook,) = shop.client.webhooks.list()
    assert (webhook.url, webhook.events) == (url, ["bounced", "complained"])


def test_tracking_of_a_domain_follows_the_file(shop):
    name = f"{uuid4().hex}.example"
    text = f"domains:\n  - name: {name}\n    clickTracking: false\n    tracking: {{subdomain: links}}\n"
    assert shop.apply("--yes", text=text).code == 0
    (domain,) = shop.client.domains.list()
    assert (domain.tracking.host, domain.open_tracking, domain.click_tracking) == (f"links.{name}", True, False)
    assert shop.plan(text=text) == []
    assert shop.initial()["domains"] == [
        {"name": name, "tls": "opportunistic", "clickTracking": False, "tracking": {"subdomain": "links"}}
    ]
    changed = text.replace("links", "click")
    fields = json.loads(shop.apply("--dry-run", text=changed).output)["changes"][0]["fields"]
    assert fields == {"tracking": {"from": "links", "to": "click"}}
    removed = text.replace("{subdomain: links}", "null")
    assert shop.apply("--yes", text=removed).code == 0
    assert shop.client.domains.get(domain.id).tracking is None


def test_drift_by_hand_is_shown_in_the_plan_and_undone(shop):
    shop.apply("--yes")
    client = shop.client
    (template,), (webhook,) = client.templates.list(), client.webhooks.list()
    client.templates.update(template.id, html_content="<p>Hacked</p>", name="Other")
    client.webhooks.update(webhook.id, events=["sent"], active=True)
    (domain,) = [one for one in client.domains.list() if one.tls == "required"]
    client.domains.update(domain.id, tls="opportunistic")
    client.templates.create(name="By hand", subject="x", html_content="x", alias="by-hand")
    changes = json.loads(shop.apply("--dry-run").output)
    assert [(one["kind"], one["action"], list(one["fields"])) for one in changes["changes"]] == [
        ("domain", "update", ["tls"]),
        ("template", "update", ["name", "htmlContent"]),
        ("webhook", "update", ["events", "active"]),
    ]
    assert changes["changes"][0]["fields"]["tls"] == {"from": "opportunistic", "to": "required"}
    assert [(one["kind"], one["name"]) for one in changes["unmanaged"]] == [("template", "by-hand")]
    assert shop.apply("--yes").code == 0
    assert shop.plan() == []
    assert client.templates.get(template.id).html_content == "<p>Welcome,\n{{ name }}</p>\n"
    assert len(list(client.templates.list())) == 2


STREAMS = """\
streams:
  - id: main
    name: Shop
  - id: newsletter
    name: Newsletter
    kind: bulk
    trackOpens: false
"""


def test_streams_are_created_changed_and_archived_only_with_prune(shop):
    client = shop.client
    created = [("update", "stream", "main"), ("create", "stream", "newsletter")]
    assert shop.plan(text=STREAMS) == created
    assert [one.id for one in client.streams.list()] == ["main"]
    shop.apply("--yes")
    assert shop.plan() == []
    main, newsletter = client.streams.list()
    assert (main.name, newsletter.kind, newsletter.track_opens) == ("Shop", "bulk", False)
    client.streams.update("newsletter", track_opens=True)
    client.streams.create(id="old", name="Old")
    plan = json.loads(shop.apply("--dry-run").output)
    assert [(one["action"], one["name"], one["fields"]) for one in plan["changes"]] == [
        ("update", "newsletter", {"trackOpens": {"from": True, "to": False}})
    ]
    assert [(one["action"], one["name"]) for one in plan["unmanaged"]] == [("keep", "old")]
    shop.apply("--yes")
    assert client.streams.get("old").archived_at is None
    assert shop.plan("--prune") == [("archive", "stream", "old")]
    shop.apply("--yes", "--prune")
    assert client.streams.get("old").archived_at
    assert shop.plan("--prune") == []


def test_a_stream_of_the_file_is_archived_and_unarchived_and_its_kind_not_changed(shop):
    client = shop.client
    archived = f"{STREAMS}    archived: true\n"
    shop.apply("--yes", text=archived)
    result = shop.apply("--yes", text=STREAMS.replace("bulk", "transactional").replace("Shop", "Other"))
    assert (result.code, "cannot be changed from bulk to transactional" in result.errors) == (1, True)
    assert client.streams.get("main").name == "Shop"
    shop.path.write_text(archived)
    assert client.streams.get("newsletter").archived_at
    assert shop.plan() == []
    assert shop.plan(text=STREAMS) == [("update", "stream", "newsletter")]
    shop.apply("--yes")
    assert client.streams.get("newsletter").archived_at is None
    shop.apply("--yes", text=archived)
    assert client.streams.get("newsletter").archived_at


def test_a_webhook_gets_the_events_of_its_streams(shop):
    hook = "webhooks:\n  - url: https://example.com/news\n    events: [clicked]\n    streams: [newsletter]\n"
    shop.apply("--yes", text=STREAMS + hook)
    (webhook,) = shop.client.webhooks.list()
    assert webhook.streams == ["newsletter"]
    assert shop.plan() == []
    shop.apply("--yes", text=STREAMS + hook.replace("[newsletter]", "[]"))
    assert shop.client.webhooks.get(webhook.id).streams is None
    shop.client.webhooks.update(webhook.id, streams=["main"])
    assert shop.initial()["webhooks"][0]["streams"] == ["main"]


def test_the_headers_of_a_webhook_are_compared_by_name_and_never_shown(shop):
    hook = "webhooks:\n  - url: https://example.com/news\n    events: [clicked]\n"
    headers = "    headers:\n      Authorization: Bearer ${HOOK_TOKEN}\n"
    created = shop.apply("--yes", text=hook + headers)
    (webhook,) = shop.client.webhooks.list()
    assert webhook.headers == {"Authorization": "********"}
    assert TOKEN not in created.output + created.errors
    assert shop.plan() == []
    added = headers + "      X-Team: mail-1234\n"
    assert shop.plan(text=hook + added) == [("update", "webhook", "https://example.com/news")]
    shown = shop.apply("--yes")
    assert "mail-1234" not in shown.output + shown.errors
    assert shop.client.webhooks.get(webhook.id).headers.keys() == {"Authorization", "X-Team"}
    shop.path.unlink()
    result = shop.apply("--init")
    (entry,) = yaml.safe_load(shop.path.read_text())["webhooks"]
    assert entry["headers"] == {"Authorization": "${WEBHOOK_HEADER_1}", "X-Team": "${WEBHOOK_HEADER_2}"}
    assert "Set WEBHOOK_HEADER_1 to the header Authorization" in result.errors
    assert shop.apply("--dry-run", WEBHOOK_HEADER_1="Bearer a", WEBHOOK_HEADER_2="b").code == 0


ROUTES = """\
webhooks:
  - url: https://example.com/inbound
    events: [bounced]
routes:
  - name: Support
    domain: shared
    match: "*+Support"
    webhooks: [https://example.com/inbound]
    storeDays: 3
  - name: Everything else
    domain: shared
    match: "*"
    priority: 900
    action: discard
blocks:
  - sender: Bücher.example
  - sender: Eve@example.com
"""


def test_routes_and_blocked_senders_follow_the_file_and_the_initial_file_has_them(shop):
    client = shop.client
    assert shop.plan(text=ROUTES) == [
        ("create", "webhook", "https://example.com/inbound"),
        ("create", "route", "*+Support@shared"),
        ("create", "route", "*@shared"),
        ("create", "blocked sender", "xn--bcher-kva.example"),
        ("create", "blocked sender", "eve@example.com"),
    ]
    shop.apply("--yes")
    before = shop.state()
    assert shop.apply("--yes").json["changes"] == []
    assert shop.state() == before
    (support, other), (webhook,) = client.inbound.routes.list(), client.webhooks.list()
    assert (support.webhook_ids, support.store_days, support.match) == ([webhook.id], 3, "*+support")
    assert (other.action, other.priority) == ("discard", 900)
    client.inbound.routes.update(support.id, webhook_ids=[], store_days=None)
    client.inbound.routes.create(name="By hand", domain="shared", match="*+hand")
    client.inbound.blocks.create("mallory.example")
    plan = json.loads(shop.apply("--dry-run").output)
    assert [(one["name"], one["fields"]) for one in plan["changes"]] == [
        (
            "*+Support@shared",
            {"webhooks": {"from": [], "to": ["https://example.com/inbound"]}, "storeDays": {"from": None, "to": 3}},
        )
    ]
    assert [one["name"] for one in plan["unmanaged"]] == ["mallory.example", "*+hand@shared"]
    shop.apply("--yes", "--prune")
    assert shop.plan("--prune") == []
    assert client.inbound.routes.get(support.id).webhook_ids == [webhook.id]
    assert [one.sender for one in client.inbound.blocks.list()] == ["eve@example.com", "xn--bcher-kva.example"]
    written = shop.initial()
    assert [one["match"] for one in written["routes"]] == ["*+support", "*"]
    assert written["routes"][0]["webhooks"] == ["https://example.com/inbound"]
    assert [one["sender"] for one in written["blocks"]] == ["xn--bcher-kva.example", "eve@example.com"]
    assert shop.plan("--prune") == []


def test_a_route_names_a_webhook_of_the_workspace(shop):
    text = ROUTES.replace("    webhooks: [https://example.com/inbound]", "    webhooks: ['https://example.com/no?t=x']")
    result = shop.apply("--yes", text=text)
    assert (result.code, "has no webhook https://example.com/no." in result.errors) == (1, True), result.errors
    assert list(shop.client.inbound.routes.list()) == []


def test_receiving_of_a_domain_follows_the_file(shop):
    text = f"domains:\n  - name: {uuid4().hex}.example\n    receiving: false\n"
    assert shop.apply("--yes", text=text).code == 0
    assert shop.plan() == []
    assert shop.apply("--yes", text=text.replace("false", "true")).code == 0
    (domain,) = shop.client.domains.list()
    assert (domain.receiving.enabled, shop.plan()) == (True, [])


def test_the_initial_file_has_the_streams_of_a_workspace_that_uses_them(shop):
    assert "streams" not in shop.initial()
    shop.client.streams.create(id="alerts", name="Alerts", unsubscribe="none")
    shop.client.streams.archive("alerts")
    (stream,) = shop.initial()["streams"]
    assert (stream["id"], stream["unsubscribe"], stream["archived"]) == ("alerts", "none", True)
    assert shop.plan("--prune") == []


def test_objects_that_are_not_in_the_file_are_deleted_only_with_prune_and_in_sections_of_the_file(shop):
    shop.apply("--yes")
    client = shop.client
    client.templates.create(name="By hand", subject="x", html_content="x")
    client.domains.create(f"{uuid4().hex}.example")
    client.webhooks.create(url="https://example.com/old?token=hidden", events=["sent"])
    client.workspaces.keys.create(shop.workspace_id, name="Website", scope="full_access")
    assert shop.plan() == []
    assert [one[:2] for one in shop.plan("--prune")] == [
        ("delete", "API key"), ("delete", "webhook"), ("delete", "template"), ("delete", "domain")
    ]  # fmt: skip
    assert "hidden" not in shop.apply("--dry-run", "--prune").output
    before = shop.state()
    assert shop.plan("--prune", text="name: Shop\n") == []
    assert [one[:2] for one in shop.plan("--prune", text="templates: []\n")] == [("delete", "template")] * 2
    assert shop.state() == before
    assert shop.apply("--yes", "--prune", text="templates: []\nwebhooks: []\n").code == 0
    assert (list(client.templates.list()), list(client.webhooks.list())) == ([], [])
    assert len(list(client.domains.list())) == 3


BAD = """\
name: Shop
domians: []
domains:
  - name: gmail.com
  - tls: maybe
  - name: {name}.example
  - name: {NAME}.example.
templates:
  - alias: welcome
    name: Welcome
    subject: ${{MISSING_VARIABLE}}
    htmlFile: welcome.html
  - alias: broken
    name: Broken
    subject: ${{not a name}}
    htmlFile: absent.html
  - alias: unclosed
    name: Unclosed
    subject: Hello
    htmlFile: unclosed.html
webhooks:
  - url: ftp://example.com
    events: [opend]
    active: 1
apiKeys:
  - name: Website
    scope: everything
"""


def test_only_content_below_the_configuration_is_included(tmp_path):
    directory = tmp_path / "configuration"
    (directory / "templates").mkdir(parents=True)
    (directory / ".git").mkdir()
    for secret in (".git/config", ".git/a.html", ".env", ".secret.html", "id_rsa", "key.pem", "welcome.txt"):
        (directory / secret).write_text("SECRET")
    (directory / "env.html").symlink_to(".env")
    (directory / "git.html").symlink_to(".git/a.html")
    (directory / "nested.html").mkdir()
    (tmp_path / "secret.html").write_text("SECRET")
    (directory / "link.html").symlink_to(tmp_path / "secret.html")
    (directory / "linked").symlink_to(tmp_path)
    (directory / "templates" / "welcome.html").write_text("<p>Welcome</p>")
    (directory / "inner.html").symlink_to("templates/welcome.html")
    name = directory / "postrider.yaml"
    reasons = {
        f"It must be in the directory {directory} or below.": (
            "../secret.html", "/etc/hostname", "link.html", "linked/secret.html", ".",
        ),
        "Hidden files and directories are not read.": (
            ".git/config", ".git/a.html", ".env", ".secret.html", "env.html", "git.html",
        ),
        "Its name must end in .html or .htm.": ("id_rsa", "key.pem", "welcome.txt"),
        "It is not a file.": ("nested.html",),
    }  # fmt: skip
    for file, reason in [(file, reason) for reason, files in reasons.items() for file in files]:
        source, faults = read_configuration(file_with(name, file))
        message = f"{file} cannot be read: {reason}"
        assert [(fault.line, fault.field, fault.message) for fault in faults] == [(5, "templates[0].htmlFile", message)]
        assert "SECRET" not in str(source.workspaces), file
    for file in ("templates/welcome.html", "./templates/../templates/welcome.html", "inner.html"):
        source, faults = read_configuration(file_with(name, file))
        assert faults == [], file
        assert source.workspaces[0].values["templates"][0]["htmlContent"] == "<p>Welcome</p>", file


def file_with(name: Path, html_file: str) -> str:
    """Write a configuration with a template, and return its name."""
    name.write_text(f"templates:\n  - alias: a\n    name: A\n    subject: Hi\n    htmlFile: {html_file}\n")
    return str(name)


def test_a_bad_file_reports_all_errors_at_once_with_their_lines_and_changes_nothing(shop):
    name = uuid4().hex
    (shop.cli.home / "unclosed.html").write_text("<p>\n{{#if name}}")
    before = shop.state()
    result = shop.apply("--yes", text=BAD.format(name=name, NAME=name.upper()))
    errors = json.loads(result.output)["errors"]
    assert [(error["line"], error["field"]) for error in errors] == [
        (2, "domians"),
        (4, "domains[0].name"),
        (5, "domains[1].name"),
        (5, "domains[1].tls"),
        (7, "domains[3]"),
        (11, "templates[0].subject"),
        (15, "templates[1].subject"),
        (16, "templates[1].htmlFile"),
        (20, "templates[2].htmlContent"),
        (22, "webhooks[0].url"),
        (23, "webhooks[0].events[0]"),
        (24, "webhooks[0].active"),
        (27, "apiKeys[0].scope"),
    ]
    lines = result.errors.splitlines()
    assert (result.code, len(lines)) == (1, 14)
    assert lines[0].startswith("postrider.yaml:2: domians: Unknown field 'domians'. Did you mean 'domains'?")
    assert "line 2, column 1" in lines[8]
    assert "13 errors; nothing was changed" in lines[-1]
    assert shop.state() == before


# Each list has the one before it eight times.
ALIASES = "a: &a [1]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 8)}]\n" for before, name in itertools.pairwise("abcdefgh")
)


UNUSABLE = [
    ("domains:\n  - name: [", 2, "The YAML is invalid"),
    ("name: a\nname: b\n", 2, "occurs twice"),
    ("on: a\n", 1, "must be a string"),
    ("name: !!python/object:os.system x\n", 1, "is not allowed"),
    ("- name: a\n", 1, "must be a mapping"),
    *((text, 1, "The file is empty") for text in ("\n", "# name: Shop\n", "---\n...\n", "{}\n", "null\n")),
    ("name: &a [*a]\n", 1, ""),
    ("[" * 5_000, 1, "nested too deeply"),
    ("name: 0x" + "f" * 6_000, 1, "not a number"),
    (ALIASES, 1, "more than 20,000 values"),
    ("name: " + "x" * 1_100_000, 1, "is larger than"),
    ("workspaces: []\n", 1, "requires a management key"),
    ("workspaces: []\ndomains: []\n", 2, "belong to one of the workspaces"),
    ("name: Shop\ngroup: a\n", 2, "for a management key"),
    ("name: Shop\nplan: free\n", 2, "requires a management key"),
    ("name: Shop\nid: ws_other\n", 2, "The API key is for the workspace"),
]


def test_an_unusable_file_is_refused_with_the_line_of_the_error(shop):
    for text, line, message in UNUSABLE:
        result = shop.apply("--yes", text=text)
        error = json.loads(result.output)["errors"][-1]
        assert (result.code, error["line"]) == (1, line), text[:60]
        assert message in error["message"]
    absent = shop.apply("-f", "absent.yaml")
    assert (absent.code, absent.errors.count("\n"), absent.output) == (1, 1, "")


def test_the_file_can_come_from_standard_input(shop):
    assert shop.cli.run("apply", "-f", "-", "--yes", stdin="name: Piped\n").code == 0
    assert shop.client.workspaces.get(shop.workspace_id).name == "Piped"


def test_a_failure_in_the_middle_reports_the_changes_that_were_made_and_a_second_run_continues(shop, manager):
    manager.workspaces.update(shop.workspace_id, plan="free")
    result = shop.apply("--yes")
    assert (result.code, "1 domain" in result.errors, "(1) is reached" in result.errors) == (6, False, True)
    assert [one["status"] for one in json.loads(result.output)["changes"]] == [
        "done", "done", "failed", "pending", "pending", "pending"
    ]  # fmt: skip
    assert "2 of 6 changes were made. Run the command again" in result.errors
    assert len(list(shop.client.domains.list())) == 1
    assert list(shop.client.templates.list()) == []
    manager.workspaces.update(shop.workspace_id, plan="enterprise")
    assert [one["status"] for one in shop.apply("--yes").json["changes"]] == ["done"] * 4
    assert shop.plan() == []


def test_a_service_that_disappears_in_the_middle_is_reported(shop, service):
    shop.apply("--yes")
    shop.client.templates.delete(next(iter(shop.client.templates.list())).id)
    with proxy(service.stack.url) as server:
        shop.cli.run("apply", "--yes", "--url", server.url, HOOK_TOKEN=TOKEN)
        # The last two create the template and release the lease.
        requests = len(server.seen) - 2
    shop.client.templates.delete(next(iter(shop.client.templates.list())).id)
    with proxy(service.stack.url, *[None] * requests, *[LOSE] * 20) as server:
        result = shop.cli.run("apply", "--yes", "--url", server.url, HOOK_TOKEN=TOKEN)
    assert (result.code, "Not completed: create template welcome" in result.errors) == (7, True), result.errors
    assert shop.apply("--yes").code == 0
    assert shop.plan() == []


def test_without_a_terminal_the_plan_is_shown_and_nothing_is_changed(shop):
    before = shop.state()
    result = shop.apply()
    assert (result.code, "pass --yes" in result.errors) == (1, True)
    assert {one["status"] for one in json.loads(result.output)["changes"]} == {"planned"}
    assert shop.state() == before


def test_secrets_with_quotes_and_line_breaks_are_hidden(shop):
    secrets = ['c0ffee"3f8a1d', "c0ffee\\3f8a1d", "c0ffee\n3f8a1d", "x" * 190 + "c0ffee" * 10]
    text = "templates:\n  - {alias: a, name: ab, subject: s, htmlContent: '<p>${SECRET}</p>'}\n"
    for secret in secrets:
        result = shop.apply("--dry-run", text=text, SECRET=secret)
        assert (result.code, "c0ffee" in result.output, "<p>${SECRET}</p>" in result.output) == (8, False, True), secret
    shop.client.templates.create(name="ab", subject="s", html_content="x\ny", alias="a")
    for secret in secrets:
        shown = CommandLine({**shop.cli.environment, "SECRET": secret}, shop.cli.home).screen("apply", "--dry-run").text
        assert ("c0ffee" in shown, "3f8a1d" in shown, "${SECRET}" in shown) == (False, False, True), secret


def test_the_name_of_a_new_secret_hides_the_secrets_of_the_file(shop):
    text = "webhooks:\n  - {url: 'https://example.com/${SECRET}', events: [bounced]}\n"
    result = shop.apply("--yes", text=text, SECRET="c0ffee3f8a1d")
    assert result.json["secrets"][0]["name"] == "https://example.com/${SECRET}"
    assert "c0ffee" not in result.output + result.errors


def test_secrets_are_written_to_a_file_that_only_the_user_can_read(shop):
    path = shop.cli.home / "secrets.jsonl"
    path.touch(mode=0o644)
    before = shop.state()
    result = shop.apply("--yes", "--secrets-file", str(path))
    assert (result.code, f"chmod 600 {path}" in result.errors) == (1, True)
    assert shop.state() == before
    path.unlink()
    result = shop.apply("--yes", "--secrets-file", str(path))
    assert result.json["secrets"] == []
    secrets = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(one["kind"], one["name"]) for one in secrets] == [
        ("webhook", "https://example.com/events?…"), ("API key", "Website (sending_access)")
    ]  # fmt: skip
    assert path.stat().st_mode & 0o777 == 0o600
    assert not any(one["secret"] in result.output for one in secrets)


def test_a_key_with_full_access_applies_everything_but_keys_and_names(shop):
    key = shop.client.workspaces.keys.create(shop.workspace_id, name="full", scope="full_access").key
    refused = shop.apply("--yes", POSTRIDER_API_KEY=key)
    assert [(one["line"], one["field"]) for one in json.loads(refused.output)["errors"]] == [
        (1, "name"), (16, "apiKeys")
    ]  # fmt: skip
    text = shop.path.read_text().partition("apiKeys")[0].replace("name: Shop\n", "")
    assert shop.apply("--yes", text=text, POSTRIDER_API_KEY=key).code == 0
    reader = shop.client.workspaces.keys.create(shop.workspace_id, name="reader", scope="read_only").key
    assert shop.apply("--dry-run", POSTRIDER_API_KEY=reader).code == 0


def test_on_a_terminal_the_plan_is_coloured_and_needs_an_agreement(shop):
    shop.client.templates.create(name="By hand", subject="x", html_content="x")
    before = shop.state()
    with terminal(shop, "apply", "--prune") as screen:
        text = screen.wait_for("Make these changes?")
        assert screen.colour_of("- template By hand") == "red"
        assert screen.colour_of("+ template welcome") == "green"
        assert "Plan: 5 to create, 1 to change, 1 to delete." in text
        assert "token=${HOOK_TOKEN}" not in text
        screen.type("n\n")
        screen.finish()
    assert (screen.code, shop.state()) == (1, before)
    with terminal(shop, "apply") as screen:
        screen.wait_for("Make these changes?")
        screen.type("y\n")
        text = screen.finish()
    assert (screen.code, text.count("Store the secret"), "whsec_" in text, TOKEN in text) == (0, 2, True, False)
    unchanged = CommandLine({**shop.cli.environment, "HOOK_TOKEN": TOKEN}, shop.cli.home).screen("apply")
    assert "No changes: the service matches the file." in unchanged.text


def test_a_change_by_hand_while_the_plan_is_read_stops_the_run(shop):
    with terminal(shop, "apply") as screen:
        screen.wait_for("Make these changes?")
        shop.client.templates.create(name="Welcome", subject="Mine", html_content="x", alias="welcome")
        screen.type("y\n")
        assert "changed since the plan was made" in screen.finish()
    assert (screen.code, list(shop.client.domains.list())) == (1, [])


def terminal(shop, *arguments):
    return CommandLine({**shop.cli.environment, "HOOK_TOKEN": TOKEN}, shop.cli.home).terminal(*arguments)


def test_init_writes_the_present_state_over_no_file_and_applying_it_changes_nothing(shop):
    before = shop.path.read_text()
    result = shop.apply("--init")
    assert (result.code, "exists already" in result.errors, shop.path.read_text()) == (1, True, before)
    shop.apply("--yes")
    shop.client.templates.create(name="No alias", subject="x", html_content="x")
    shop.client.templates.create(name="Price", alias="price", subject="${5}", html_content="${5}\r\n", text_content="5")
    limits = {"networks": ["192.0.2.0/24"]}
    shop.client.workspaces.keys.create(shop.workspace_id, name="Office", scope="read_only", limits=limits)
    shop.client.workspaces.keys.create(shop.workspace_id, name="CI", scope="sending_access", test=True)
    path = shop.cli.home / "new/postrider.yaml"
    result = shop.apply("--init", "-f", str(path))
    assert result.json["files"] == [
        str(path), "templates/welcome.html", "templates/price.html", "templates/price.txt"
    ]  # fmt: skip
    assert "Set WEBHOOK_QUERY_1 to the query of the webhook https://example.com/events." in result.errors
    assert "The template No alias has no alias" in result.errors
    written = "".join(file.read_text() for file in path.parent.rglob("*.*"))
    assert not any(secret in written for secret in (TOKEN, shop.cli.environment["POSTRIDER_API_KEY"]))
    keys = yaml.safe_load(path.read_text())["apiKeys"]
    assert {"name": "CI", "scope": "sending_access", "test": True} in keys
    assert {"name": "Office", "scope": "read_only", "limits": limits} in keys
    again = shop.apply("--dry-run", "-f", str(path), WEBHOOK_QUERY_1=f"token={TOKEN}")
    assert (again.code, json.loads(again.output)["changes"]) == (0, []), again
    assert [one["name"] for one in json.loads(again.output)["unmanaged"]] == ["No alias"]


def test_spaces_around_names_are_no_change(shop):
    text = "name: ' Shop '\napiKeys: [{name: ' Website ', scope: read_only}]\n"
    assert shop.apply("--yes", text=text).code == 0
    assert shop.plan() == []


def test_more_templates_than_one_request_checks_are_all_checked(shop):
    template = "  - {{alias: t{0}, name: T, subject: '{1}', htmlContent: x}}\n"
    subjects = [*["fine"] * 6, "{{#if}}", *["fine"] * 6]
    text = "templates:\n" + "".join(template.format(index, subject) for index, subject in enumerate(subjects))
    result = shop.apply("--yes", text=text)
    assert [(error["line"], error["field"]) for error in json.loads(result.output)["errors"]] == [
        (8, "templates[6].subject")
    ]  # fmt: skip
    assert shop.apply("--yes", text=text.replace("{{#if}}", "fine")).code == 0
    assert len(list(shop.client.templates.list())) == 13


@pytest.mark.parametrize(
    "rules",
    [
        {"allow": ["Ada@Example.COM ", "@Example.org", "@*.Staging.Example.com", "@example.org"]},
        {"allow": ["@bücher.example", "@*.München.example", "Grüße@example.com"], "otherwise": "capture"},
        {"allow": [], "otherwise": "redirect", "redirectTo": "QA@example.org"},
    ],
)
def test_a_file_has_no_change_if_the_service_stores_the_same_rules(rules):
    fields = {("redirect_to" if name == "redirectTo" else name): value for name, value in rules.items()}
    assert normal_rules(rules) == read_rules(**fields).to_json()


def test_a_file_sets_and_removes_rules(shop):
    rules = "recipientRules:\n  allow: ['Ada@Example.com', '@bücher.example']\n  otherwise: capture\n"
    keys = "apiKeys:\n  - name: Staging\n    scope: sending_access\n"
    text = f"{rules}{keys}    recipientRules: {{allow: [ada@example.com]}}\n"
    assert shop.apply("--yes", text=text).code == 0
    workspace = shop.client.workspaces.get(shop.workspace_id)
    assert workspace.recipient_rules.allow == ["ada@example.com", "@xn--bcher-kva.example"]
    (key,) = [one for one in shop.client.workspaces.keys.list(shop.workspace_id) if one.name == "Staging"]
    assert key.recipient_rules.otherwise == "refuse"
    assert shop.plan(text=text) == []
    described = shop.initial()
    assert described["recipientRules"]["allow"] == workspace.recipient_rules.allow
    changed = f"recipientRules: null\n{keys}    recipientRules: {{allow: []}}\n"
    assert shop.apply("--yes", text=changed).code == 0
    assert shop.client.workspaces.get(shop.workspace_id).recipient_rules is None
    assert shop.client.workspaces.keys.list(shop.workspace_id)
    assert shop.plan(text=changed) == []
