"""python -m tests.deploy.internet MAIL ADDRESS NAMESERVER: the rest of the world, in a network namespace.

Answers DNS queries on NAMESERVER from the zones that arrive as lines of JSON on standard input, and writes the mail
that arrives on port 25 of ADDRESS into the directory MAIL.
"""

import json
import socket
import sys
from pathlib import Path

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, Envelope, Session

from tests.core.lib.nameserver import NameServer
from tests.stack.stack import wait_for


class MailDirectory:
    """aiosmtpd handler that writes each message to a file."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802
        number = len(list(self.directory.iterdir()))
        (self.directory / f"{number:06}.eml").write_bytes(envelope.original_content or b"")
        return "250 2.0.0 Accepted"


def has_address(address: str) -> bool:
    with socket.socket(type=socket.SOCK_DGRAM) as probe:
        try:
            probe.bind((address, 0))
        except OSError:
            return False
        return True


def main(mail: str, address: str, name_server: str) -> None:
    for one in (address, name_server):
        wait_for(lambda one=one: has_address(one), seconds=60, what=f"the network with {one}")
    Controller(MailDirectory(Path(mail)), hostname=address, port=25).start()
    with NameServer(address=(name_server, 53)) as server:
        for line in sys.stdin:
            server.zones.update(json.loads(line))


if __name__ == "__main__":
    main(*sys.argv[1:])
