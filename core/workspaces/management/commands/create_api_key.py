"""Command create_api_key: create an API key for a workspace and print it once."""

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from rest_framework.exceptions import ValidationError

from core.api.errors import InvalidFields, Problem
from core.workspaces.api.serializers import RecipientRulesInput
from core.workspaces.key_limits import read_limits
from core.workspaces.management.accounts import read_expiry, read_name
from core.workspaces.models import ApiKey, Workspace
from core.workspaces.recipients.rules import RecipientRules
from core.workspaces.services import issue_api_key

LIMITS = ("domains", "networks", "templates", "streams", "requests_per_second", "is_test", "needs_approval")

EXAMPLES = {"domain": "shop.example", "network": "203.0.113.0/24", "template": "welcome", "stream": "receipts"}


class Command(BaseCommand):
    help = "Create an API key and print it. It cannot be shown again."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--workspace", required=True, help="the workspace's id, ws_…")
        parser.add_argument("--name", required=True, type=read_name)
        parser.add_argument("--scope", required=True, choices=ApiKey.Scope.values)
        parser.add_argument("--expires", help="an ISO 8601 time such as 2027-01-01T00:00:00Z")

        for name, example in EXAMPLES.items():
            parser.add_argument(
                f"--{name}",
                action="append",
                default=[],
                dest=f"{name}s",
                metavar=name.upper(),
                help=f"limits the key, such as {example}; may be repeated",
            )
        parser.add_argument("--test", action="store_true", dest="is_test", help="create a test key: nothing is sent")
        parser.add_argument(
            "--approval",
            action="store_true",
            dest="needs_approval",
            help="its emails wait until a person approves them",
        )
        parser.add_argument("--requests-per-second", type=int, help="limits the key")
        parser.add_argument(
            "--recipient-rules",
            metavar="JSON",
            help="""who may get its emails, such as '{"allow": ["@example.com"], "otherwise": "capture"}'""",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        workspace = self.workspace(options["workspace"])
        expires_at = read_expiry(options["expires"]) if options["expires"] else None
        fields = {"name": options["name"], "scope": options["scope"], "expires_at": expires_at}
        try:
            limits = read_limits(**{name: options[name] for name in LIMITS})
            rules = _read_rules(options["recipient_rules"]) if options["recipient_rules"] else None
            key, secret = issue_api_key(workspace, limits=limits, rules=rules, **fields)
        except InvalidFields as problem:
            raise CommandError(" ".join(error["detail"] for error in problem.members["errors"])) from problem
        except Problem as problem:
            raise CommandError(problem.detail) from problem
        self.stdout.write(json.dumps({"id": key.id, "key": secret.text}))

    def workspace(self, workspace_id: str) -> Workspace:
        try:
            return Workspace.objects.get(id=workspace_id)
        except (Workspace.DoesNotExist, ValueError) as error:
            raise CommandError(f"Workspace {workspace_id!r} does not exist.") from error


def _read_rules(text: str) -> RecipientRules:
    """Return recipient rules in the form of the API. Raises CommandError."""
    try:
        rules: RecipientRules = RecipientRulesInput().run_validation(json.loads(text))
    except ValueError as error:
        raise CommandError(f"--recipient-rules is not JSON: {error}") from error
    except ValidationError as error:
        raise CommandError(f"--recipient-rules: {json.dumps(error.detail)}") from error
    return rules
