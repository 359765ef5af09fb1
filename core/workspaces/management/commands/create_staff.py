"""Command create_staff: create an account that may sign in to the staff admin at /admin/."""

from typing import Any

from django.conf import settings
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from core.workspaces.management.accounts import add_account_arguments, read_account
from core.workspaces.models import User


class Command(BaseCommand):
    help = (
        "Create an account with all permissions at /admin/, or give them to an existing account. Without a password "
        "option, the command asks for the password."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        add_account_arguments(parser, is_password_required=False)

    def handle(self, *args: Any, **options: Any) -> None:
        email, password = read_account(options)
        user = User.objects.filter(email=email).first()
        if user is None:
            self.create(email, password)
        elif not user.check_password(password):
            raise CommandError(f"Wrong password for the existing account {email}.")
        else:
            User.objects.filter(pk=user.pk).update(is_staff=True, is_superuser=True)
        self.stdout.write(f"{email} can sign in at {settings.PUBLIC_URL}/admin/.")

    def create(self, email: str, password: str) -> None:
        try:
            validate_password(password, User(email=email))
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from error
        User.objects.create_superuser(email, password)
