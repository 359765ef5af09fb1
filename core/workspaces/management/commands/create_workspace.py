"""Command create_workspace: create an account and a workspace, for scripts."""

import json
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from core.workspaces.management.accounts import add_account_arguments, read_account, read_name
from core.workspaces.models import User
from core.workspaces.services import create_account, create_workspace

# The operator's own workspaces have no limits.
PLAN_OF_OPERATOR = "enterprise"


class Command(BaseCommand):
    help = "Create a workspace, and the owner's account if it does not exist."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--name", required=True, type=read_name)
        add_account_arguments(parser)
        parser.add_argument(
            "--plan", default=PLAN_OF_OPERATOR, choices=list(settings.PLANS), help="default: enterprise, without limits"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        email, password = read_account(options)
        workspace = self.workspace(email, password, options["name"], options["plan"])
        self.stdout.write(json.dumps({"workspaceId": workspace.id}))

    @transaction.atomic
    def workspace(self, email: str, password: str, name: str, plan: str) -> Any:
        owner = User.objects.filter(email=email).first()
        if owner is None:
            return create_account(email=email, password=password, workspace_name=name, plan=plan)
        if not owner.check_password(password):
            raise CommandError(f"Wrong password for the existing account {email}.")
        return create_workspace(name=name, plan=plan, owner=owner)
