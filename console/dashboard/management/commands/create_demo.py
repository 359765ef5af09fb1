"""Command create_demo: create the demo account of bin/run and print its credentials as JSON."""

import json
import secrets
from typing import Any

from django.core.management.base import BaseCommand
from django.db import transaction

from core.workspaces.models import ApiKey, User, Workspace
from core.workspaces.services import create_account, issue_api_key
from domains.services import register_domain
from receiving.services import create_route

DOMAIN = "demo.example"
OWNER = "owner@demo.example"
STAFF = "staff@demo.example"


class Command(BaseCommand):
    help = (
        "Create a demo account with an API key, a domain and a route, and a staff user. Running it again resets both "
        "passwords."
    )

    @transaction.atomic
    def handle(self, *args: Any, **options: Any) -> None:
        password, staff_password = secrets.token_urlsafe(12), secrets.token_urlsafe(12)
        workspace = self.workspace(password)
        self.staff(staff_password)
        _, secret = issue_api_key(workspace, name="Demo", scope=ApiKey.Scope.FULL_ACCESS)
        credentials = {
            "apiKey": secret.text,
            "from": f"Demo <hello@{DOMAIN}>",
            "dashboardEmail": OWNER,
            "dashboardPassword": password,
            "staffEmail": STAFF,
            "staffPassword": staff_password,
        }
        self.stdout.write(json.dumps(credentials))

    def workspace(self, password: str) -> Workspace:
        owner = User.objects.filter(email=OWNER).first()
        if owner is None:
            workspace = create_account(email=OWNER, password=password, workspace_name="Demo", plan="enterprise")
            register_domain(workspace, name=DOMAIN, changes={"receiving": True})
            create_route(workspace, values={"name": "Support", "match": "support", "domain": DOMAIN})
            return workspace
        set_password(owner, password)
        return owner.workspaces.order_by("created_at")[0]

    def staff(self, password: str) -> None:
        user = User.objects.filter(email=STAFF).first()
        if user is None:
            User.objects.create_superuser(STAFF, password)
        else:
            set_password(user, password)


def set_password(user: User, password: str) -> None:
    user.set_password(password)
    user.save(update_fields=["password"])
