"""Command create_workspace: create an account and a workspace, for scripts."""

import json
import sys
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.core.validators import validate_email
from django.db import transaction

from workspaces.models import User
from workspaces.plans import PLANS
from workspaces.services import create_account, create_workspace


class Command(BaseCommand):
    help = "Create a workspace, and the owner's account if it does not exist."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--name", required=True)
        parser.add_argument("--email", required=True)
        password = parser.add_mutually_exclusive_group(required=True)
        password.add_argument("--password")
        password.add_argument("--password-stdin", action="store_true", help="read the password from standard input")
        parser.add_argument("--plan", required=True, choices=list(PLANS))

    def handle(self, *args: Any, **options: Any) -> None:
        email = options["email"].strip().lower()
        try:
            validate_email(email)
        except ValidationError as error:
            raise CommandError(f"{options['email']!r} is not an email address.") from error
        password = sys.stdin.readline().rstrip("\r\n") if options["password_stdin"] else options["password"]
        if not password:
            raise CommandError("The password is empty.")
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
