"""Command sign_in_link: print a link that signs in to an account once, without password or identity provider."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from console.dashboard.auth.sign_in_link import create_sign_in_link
from core.workspaces.models import User, normalize_identity


class Command(BaseCommand):
    help = (
        "Print a link that signs in to an account, for when the identity provider fails. It works once, within ten "
        "minutes, and its creation is in the audit log. A second factor of the account is still asked for."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("email")

    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(email=normalize_identity(options["email"]), is_active=True).first()
        if user is None:
            raise CommandError(f"There is no active account {options['email']}. create_staff creates one for staff.")
        self.stdout.write(create_sign_in_link(user))
