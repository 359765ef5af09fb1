"""manage.py transport: take a transport out of use, and back."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from emails.sending.transport_status import drain_transport, resume_transport

ACTIONS = {
    "drain": (drain_transport, "No new email is sent by {name}, within seconds. Deliveries in progress finish."),
    "resume": (resume_transport, "{name} is used again."),
}


class Command(BaseCommand):
    help = "Take a transport out of use (drain), for all processes and until resume."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("action", choices=[*ACTIONS])
        parser.add_argument("name", help="of the transport, as in TRANSPORTS_FILE; default without one")

    def handle(self, *args: Any, **options: Any) -> None:
        act, message = ACTIONS[options["action"]]
        names = [*settings.TRANSPORTS.transports]
        if options["name"] not in names:
            raise CommandError(f"There is no transport {options['name']!r}, only {', '.join(names)}.")
        act(options["name"])
        self.stdout.write(message.format(name=options["name"]))
