"""python -m tests.stack.isolated DIRECTORY: the whole service in a network namespace, with every kind of work.

Its destinations are programs of this script on loopback. Prints a line of JSON: what was contacted.
"""

import json
import os
import smtplib
import socket
import sys
import time
from contextlib import ExitStack
from email.message import EmailMessage
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

from tests.core.lib.nameserver import NameServer
from tests.stack.packets import PacketCounter, find_others, prepare_network
from tests.stack.stack import Stack, free_port, running_stack, wait_for
from tests.webhooks.receiver import Receiver, status
from tools.embedded.servers import postgres, redis

BLOCK_LIST, REFUSED_HOSTS = "blocklist.example", "refused.example"
ZONES = {
    "mail.example": {"MX": ["10 mx.mail.example."]},
    "mx.mail.example": {"A": ["127.0.0.1"]},
}
TRANSPORTS = """
transports: {own: {kind: direct, sourceAddresses: ["127.0.0.1"]}}
routes: {default: {use: [own]}}
"""
TASKS = """
from config.celery import SCHEDULE, app
app.loader.import_default_modules()
for task, _ in SCHEDULE.values():
    app.tasks[task]()
"""
DECLARED = """
import json
from console.privacy.connections import KINDS
print(json.dumps({kind.name: list(kind.find()) for kind in KINDS}))
"""
# Addresses of documentation (RFC 5737).
ELSEWHERE = ("192.0.2.1", 25), ("192.0.2.2", 53)


class MailHost(Controller):
    """A mail host that accepts everything and keeps the recipients."""

    def __init__(self) -> None:
        self.recipients: list[str] = []
        super().__init__(self, hostname="127.0.0.1", port=free_port())

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        self.recipients += envelope.rcpt_tos
        return "250 2.0.0 Accepted"


def main(directory: Path) -> dict[str, Any]:
    tun = prepare_network()
    try:
        with PacketCounter() as packets:
            return run_service(directory, packets)
    finally:
        os.close(tun)


def run_service(directory: Path, packets: PacketCounter) -> dict[str, Any]:
    with ExitStack() as stack:
        # The second one is that of the commands which prepare the database.
        database, broker = postgres.start_throw_away(), redis.start_throw_away()
        for server in (database, broker):
            stack.callback(server.stop)
        os.environ |= {"DATABASE_URL": database.url, "REDIS_URL": broker.url}
        names = stack.enter_context(NameServer(ZONES))
        mail_host = MailHost()
        mail_host.start()
        stack.callback(mail_host.stop)
        endpoint, spam_filter = stack.enter_context(Receiver()), stack.enter_context(Receiver())
        spam_filter.answer = status(404)
        transports = directory / "transports.yaml"
        transports.write_text(TRANSPORTS)
        variables = {
            "TRANSPORTS_FILE": str(transports),
            "DNS_SERVERS": "{}:{}".format(*names.address),
            "DIRECT_SMTP_PORT": str(mail_host.port),
            "DELIVERY_ALLOW_PRIVATE_NETWORKS": "true",
            "BLOCKLISTS": BLOCK_LIST,
            "RECEIVING_DNSBL": REFUSED_HOSTS,
            "RSPAMD_URL": spam_filter.url().rstrip("/"),
            "WORKER_CONCURRENCY": "1",
            "WEB_CONCURRENCY": "1",
        }
        service = stack.enter_context(running_stack(directory, **variables))
        service.start("service")
        register_webhook(service, endpoint)
        address = use_service(service, mail_host, endpoint)
        service.manage("shell", "-c", TASKS)
        declared = json.loads(service.manage("shell", "-c", DECLARED).strip().splitlines()[-1])
        chosen = {"mail_hosts": [f"127.0.0.1:{mail_host.port}"], "webhooks": [endpoint.url().split("/")[2]]}
        known = known_places(declared, chosen) | {("127.0.0.1", broker.port)}
        others = find_others(packets.contacts, known=known)
        contacted = {one.target for one in packets.contacts if one.target in known}
        result = {
            "others": others,
            "control": contact_elsewhere(packets, known=known),
            "dropped": packets.dropped,
            "contacted": sorted(name for name, places in {**declared, **chosen}.items() if _parse(places) & contacted),
            "asked": sorted({name for name, *_ in names.questions}),
            "scanned": len(spam_filter.received),
            "address": address,
        }
    return result


def register_webhook(service: Stack, endpoint: Receiver) -> None:
    answer = service.call("POST", "/webhooks", {"url": endpoint.url(), "events": ["sent", "delivered", "received"]})
    assert answer.status == 201, answer.body


def use_service(service: Stack, mail_host: MailHost, endpoint: Receiver) -> str:
    """Send, receive and check a domain; return the address that received."""
    address = str(service.call("GET", "/inbound").body["address"])
    for recipient in ("ada@mail.example", address):
        assert service.send(to=recipient).status == 202
    deliver(service, address)
    domain = service.call("POST", "/domains", {"name": "shop.mail.example"}).body
    service.call("POST", f"/domains/{domain['id']}/verify")
    wait_for(lambda: mail_host.recipients, seconds=60, what="the email at the mail host")
    # One from outside, and the one that the service sent to itself.
    wait_for(lambda: received(service) == 2, seconds=60, what="both received emails")
    wait_for(lambda: len(endpoint.received) >= 4, seconds=60, what="webhooks of both directions")
    return address


def received(service: Stack) -> int:
    return len(service.call("GET", "/inbound/emails").body["data"])


def deliver(service: Stack, address: str) -> None:
    """Deliver a message as a mail host does."""
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "Grace <grace@mail.example>", address, "Hello"
    message["Message-ID"] = "<hello@mail.example>"
    message.set_content("Hello, Postrider!")
    with smtplib.SMTP("127.0.0.1", int(service.environment["INBOUND_PORT"])) as client:
        client.send_message(message)


def known_places(declared: dict[str, list[str]], chosen: dict[str, list[str]]) -> set[tuple[str, int]]:
    """Return the declared destinations, and for those that others choose, the chosen ones if the kind is in use."""
    return set().union(
        *(_parse(places) for places in declared.values()),
        *(_parse(places) for name, places in chosen.items() if declared[name]),
    )


def _parse(places: list[str]) -> set[tuple[str, int]]:
    parts = (place.rpartition(":") for place in places)
    return {(host.strip("[]"), int(port)) for host, _, port in parts if host and port.isdigit()}


def contact_elsewhere(packets: PacketCounter, *, known: set[tuple[str, int]]) -> list[Any]:
    """Connect to other destinations; return what the counter makes of it."""
    with socket.socket() as connection, socket.socket(type=socket.SOCK_DGRAM) as datagrams:
        connection.setblocking(False)
        connection.connect_ex(ELSEWHERE[0])
        datagrams.sendto(b"?", ELSEWHERE[1])
        deadline = time.monotonic() + 30
        while len(others := find_others(packets.contacts, known=known)) < 2 and time.monotonic() < deadline:
            time.sleep(0.05)
    return others


if __name__ == "__main__":
    sys.stdout.write(f"{json.dumps(main(Path(sys.argv[1])))}\n")
