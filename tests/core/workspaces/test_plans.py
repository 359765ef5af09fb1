"""Plans of PLANS_FILE, limits of single workspaces, and the command that changes both."""

import json
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command

from core.workspaces.account_status import change_limits
from core.workspaces.models import AuditEntry, Workspace
from core.workspaces.plans import BUILT_IN, InvalidPlans, Plan, find_plan, read_plans
from tests.conftest import Api, mail, make_account, make_domain, make_key
from tests.rows import each

BUSINESS = {"emailsPerMonth": 1_000_000, "domains": 50, "retentionDays": 180, "storageBytes": "unlimited"}


def write(tmp_path, plans):
    path = tmp_path / "plans.yaml"
    path.write_text(plans if isinstance(plans, str) else json.dumps(plans))
    return path


def limits_of(workspace):
    return Workspace.objects.get(id=workspace.id).limits


class TestFile:
    def test_it_changes_single_limits_and_adds_plans(self, tmp_path):
        plans = read_plans(write(tmp_path, {"pro": {"emailsPerMonth": 200_000}, "business": BUSINESS}))
        assert list(plans) == ["free", "pro", "enterprise", "business"]
        assert plans["pro"] == Plan("pro", 200_000, 10, timedelta(days=90), 5 * 10**9)
        assert plans["business"] == Plan("business", 1_000_000, 50, timedelta(days=180), None)
        assert plans["free"] == BUILT_IN["free"]

    @pytest.mark.parametrize(
        ("plans", "sentence"),
        [
            ("pro: {emailsPerMonth: -1}", "pro: emailsPerMonth must be a whole number from 0 to"),
            ("pro: {emailsPerMonth: many}", "or unlimited, not 'many'"),
            ("pro: {emailsPerMonth: true}", "not True"),
            ("pro: {retentionDays: unlimited}", "retentionDays must be a whole number from 1 to 36500, not"),
            ("pro: {retentionDays: 0}", "retentionDays must be"),
            ("pro: {emails: 1}", "'emails' is unknown. The limits are emailsPerMonth"),
            ("pro: 5", "pro: write the limits as name: value"),
            ("business: {emailsPerMonth: 1}", "business: domains is missing"),
            ("Business: {}", "the name of a plan has 1 to 16 characters"),
            ("a-name-that-is-too-long: {}", "the name of a plan has 1 to 16 characters"),
            ("[pro]", "must have 1 to 100 plans"),
            ("", "must have 1 to 100 plans"),
            ("pro: {", "neither YAML nor JSON"),
        ],
    )
    def test_a_mistake_is_named_with_its_place(self, tmp_path, plans, sentence):
        with pytest.raises(InvalidPlans) as raised:
            read_plans(write(tmp_path, plans))
        assert sentence in str(raised.value)
        assert str(tmp_path) in str(raised.value)

    def test_a_missing_file_is_named(self, tmp_path):
        with pytest.raises(InvalidPlans, match=r"plans\.yaml cannot be read: No such file"):
            read_plans(tmp_path / "plans.yaml")

    def test_a_plan_that_the_file_no_longer_has_deletes_nothing_early(self):
        plan = find_plan("business", BUILT_IN, default="free")
        assert (plan.name, plan.emails_per_month, plan.domains) == ("business", 500, 1)
        assert plan.retention == timedelta(days=365)


@pytest.mark.django_db
class TestWorkspace:
    def test_its_own_limits_replace_those_of_the_plan(self):
        workspace = make_account("carol", plan="free").workspace
        make_domain(workspace, "alice.example")
        change_limits(workspace, limits={"emailsPerMonth": 1, "retentionDays": 30})
        api = Api(make_key(workspace))
        assert api.post("/emails/send", mail()).status_code == 202
        refused = api.post("/emails/send", mail()).json()
        assert (refused["code"], refused["limit"]) == ("quota_exceeded", 1)
        assert api.get("/me").json()["quota"]["limit"] == 1
        assert limits_of(workspace) == Plan("free", 1, 1, timedelta(days=30), 100 * 10**6)

    def test_none_is_unlimited_and_an_empty_set_is_the_plan(self):
        workspace = make_account("carol", plan="free").workspace
        change_limits(workspace, limits={"domains": None})
        assert (limits_of(workspace).domains, limits_of(workspace).emails_per_month) == (None, 500)
        change_limits(workspace, limits={})
        change_limits(workspace, limits={})
        assert limits_of(workspace) == BUILT_IN["free"]
        changes = AuditEntry.objects.filter(act="plan_changed").order_by("created_at").values_list("about", flat=True)
        assert list(changes) == ["free: domains=unlimited", "free"]

    def test_a_plan_of_the_file_is_enforced(self, settings):
        workspace = make_account("carol", plan="pro").workspace
        settings.PLANS = {**BUILT_IN, "pro": BUILT_IN["pro"].with_limits({"emailsPerMonth": 0})}
        make_domain(workspace, "alice.example")
        refused = Api(make_key(workspace)).post("/emails/send", mail()).json()
        assert (refused["code"], refused["limit"]) == ("quota_exceeded", 0)


@pytest.mark.django_db
class TestCommand:
    def change(self, workspace, *options):
        call_command("change_plan", "--workspace", workspace.id, *options)

    def test_it_changes_the_plan_and_single_limits(self, capsys):
        workspace = make_account("carol", plan="free").workspace
        self.change(workspace, "--plan", "pro", "--emails-per-month", "80000", "--domains", "unlimited")
        assert json.loads(capsys.readouterr().out) == {
            "plan": "pro",
            "emailsPerMonth": 80_000,
            "domains": None,
            "retentionDays": 90,
            "storageBytes": 5 * 10**9,
        }
        self.change(workspace, "--emails-per-month", "plan", "--retention-days", "10")
        assert limits_of(workspace) == Plan("pro", 50_000, None, timedelta(days=10), 5 * 10**9)

    @each("options", [("--domains", "-1"), ("--retention-days", "unlimited"), ("--plan", "gold")])
    def test_it_refuses_what_the_file_refuses(self, options):
        workspace = make_account("carol", plan="free").workspace
        with pytest.raises(CommandError):
            self.change(workspace, *options)
        assert limits_of(workspace) == BUILT_IN["free"]

    def test_an_unknown_workspace_is_an_error(self):
        with pytest.raises(CommandError, match="There is no workspace ws_"):
            call_command("change_plan", "--workspace", "ws_0Uf7kWQ2mX1cVbNq8RtYzA", "--plan", "pro")

    def test_the_workspace_of_the_operator_has_no_limits(self, capsys):
        options = ("--name", "Acme", "--email", "me@example.com", "--password", "correct horse battery staple")
        call_command("create_workspace", *options)
        workspace = Workspace.objects.get(id=json.loads(capsys.readouterr().out)["workspaceId"])
        assert workspace.plan == "enterprise"
        assert (workspace.limits.emails_per_month, workspace.limits.domains) == (None, None)
