"""Command create_management_key: create a key of the management API and print it once."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from console.provisioning.services import issue_management_key
from core.workspaces.management.accounts import read_expiry, read_name


class Command(BaseCommand):
    help = "Create a key of the management API (/v1/admin) and print it. It cannot be shown again."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--name", required=True, type=read_name)
        parser.add_argument("--group", type=read_name, help="the group of workspaces; all workspaces by default")
        parser.add_argument("--expires", help="an ISO 8601 time such as 2027-01-01T00:00:00Z")

    def handle(self, *args: Any, **options: Any) -> None:
        expires_at = read_expiry(options["expires"]) if options["expires"] else None
        key, secret = issue_management_key(name=options["name"], group=options["group"] or "", expires_at=expires_at)
        self.stdout.write(json.dumps({"id": key.id, "key": secret.text}))
