"""`manage.py tracking_hosts`: the names that need a certificate, for certbot and other proxies than Caddy."""

from typing import Any

from django.core.management.base import BaseCommand

from interfaces.tracking.hosts import collect_hosts, read_hosts


class Command(BaseCommand):
    help = "Print the tracking hosts that lead to this service, one name a line."

    def handle(self, *args: Any, **options: Any) -> None:
        hosts = collect_hosts(read_hosts())
        for name in sorted(name for name, host in hosts.items() if host.has_certificate):
            self.stdout.write(name)
