"""Command change_plan: change the plan of a workspace, or single limits."""

import argparse
import json
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from core.workspaces.account_status import change_limits, change_plan
from core.workspaces.models import Workspace
from core.workspaces.plans import FIELDS, InvalidPlans, Plan, read_limit

OF_PLAN = "plan"
OPTIONS = {name: f"--{field.replace('_', '-')}" for name, field in FIELDS.items()}


class Command(BaseCommand):
    help = (
        "Change the plan of a workspace, or limits that replace those of its plan: a number, `unlimited`, or `plan` "
        "for that of the plan. Print the limits that apply."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--workspace", required=True, help="its id")
        parser.add_argument("--plan", choices=list(settings.PLANS))
        for name, option in OPTIONS.items():
            parser.add_argument(option, type=_limit_type(name))

    @transaction.atomic
    def handle(self, *args: Any, **options: Any) -> None:
        workspace = Workspace.objects.select_for_update().filter(id=options["workspace"]).first()
        if workspace is None:
            raise CommandError(f"There is no workspace {options['workspace']}.")
        if options["plan"]:
            change_plan(workspace, plan=options["plan"])
        given = {name: options[FIELDS[name]] for name in FIELDS if options[FIELDS[name]] is not None}
        if given:
            change_limits(workspace, limits=_merge(workspace.own_limits, given))
        changed = Workspace.objects.get(id=workspace.id)
        self.stdout.write(json.dumps({"plan": changed.plan, **_show(changed.limits)}))


def _limit_type(name: str) -> Any:
    """Return the type of an option: a limit as in PLANS_FILE, in a list of one, or `plan`."""

    def parse(text: str) -> list[int | None] | str:
        if text == OF_PLAN:
            return text
        try:
            return [read_limit(name, int(text) if text.isdecimal() else text, place=OPTIONS[name])]
        except InvalidPlans as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return parse


def _merge(own: dict[str, int | None], given: dict[str, Any]) -> dict[str, int | None]:
    changed = {name: value[0] for name, value in given.items() if value != OF_PLAN}
    return {name: value for name, value in own.items() if name not in given} | changed


def _show(limits: Plan) -> dict[str, int | None]:
    return {
        "emailsPerMonth": limits.emails_per_month,
        "domains": limits.domains,
        "retentionDays": limits.retention.days,
        "storageBytes": limits.storage_bytes,
    }
