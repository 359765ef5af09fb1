"""Demo account, created at the first start."""

import http.client
import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tools.embedded.commands import run_command
from tools.embedded.errors import CannotStart
from tools.embedded.locations import DataDirectory, write_private

ACCOUNT_KEYS = ("apiKey", "from", "dashboardEmail", "dashboardPassword")
# Missing in logins that the first versions stored.
STAFF_KEYS = ("staffEmail", "staffPassword")


@dataclass(frozen=True)
class DemoAccount:
    """The logins of the demo and the base URL of the service."""

    base_url: str
    logins: dict[str, str]

    @property
    def inbox_url(self) -> str:
        """The dashboard's inbox, which shows the emails sent from this service."""
        return f"{self.base_url}/dashboard/inbox/"

    def as_json(self) -> dict[str, str]:
        """Return the content of demo.json."""
        account = {name: self.logins[name] for name in (*ACCOUNT_KEYS, *STAFF_KEYS) if name in self.logins}
        return {"baseUrl": self.base_url, **account, "inboxUrl": self.inbox_url}

    def curl(self) -> str:
        """Return a shell command that sends an email."""
        email = {
            "from": self.logins["from"],
            "to": "ada@example.com",
            "subject": "Hello from Postrider",
            "html": "<h1>It works</h1>",
        }
        arguments = ["curl", "-sS", f"{self.base_url}/v1/emails/send"]
        for header in (f"Authorization: Bearer {self.logins['apiKey']}", "Content-Type: application/json"):
            arguments += ["-H", header]
        return shlex.join([*arguments, "-d", json.dumps(email, separators=(",", ":"), ensure_ascii=False)])

    def curl_smtp(self, port: str) -> str:
        """Return a shell command that sends an email over SMTP."""
        sender = self.logins["from"]
        envelope = ("--mail-from", sender.rpartition("<")[2].rstrip(">"), "--mail-rcpt", "ada@example.com")
        login = ("--user", f"postrider:{self.logins['apiKey']}")
        arguments = ["curl", "-sS", f"smtp://127.0.0.1:{port}", *login, *envelope]
        for header in (f"From: {sender}", "To: ada@example.com", "Subject: Hello over SMTP"):
            arguments += ["-H", header]
        return shlex.join([*arguments, "-F", "=It works."])

    def receiving_address(self, port: int) -> str | None:
        """Return the workspace's address that receives email; None if the service does not say.

        port: the port of the service. The key of the demo may have been revoked since.
        """
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", "/v1/inbound", headers={"Authorization": f"Bearer {self.logins['apiKey']}"})
            address = json.loads(connection.getresponse().read())["address"]
        except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
            return None
        finally:
            connection.close()
        return str(address) if address else None

    def curl_received(self, address: str, port: str) -> str:
        """Return a shell command that delivers an email to an address of the workspace."""
        envelope = ("--mail-from", "ada@example.com", "--mail-rcpt", address)
        arguments = ["curl", "-sS", f"smtp://127.0.0.1:{port}", *envelope]
        for header in ("From: Ada <ada@example.com>", f"To: {address}", "Subject: Hello"):
            arguments += ["-H", header]
        return shlex.join([*arguments, "-F", "=Hello, Postrider!"])


def prepare_demo(data: DataDirectory, base_url: str, environment: Mapping[str, str]) -> DemoAccount:
    """Return the demo account, created when demo.json is missing; demo.json gets the current URL."""
    if not data.demo.exists():
        write_private(data.logins, _as_text(_create(environment)))
    demo = DemoAccount(base_url, _read(data))
    write_private(data.demo, _as_text(demo.as_json()))
    return demo


def _create(environment: Mapping[str, str]) -> dict[str, str]:
    failure = "Could not create the demo account:"
    output = run_command("create_demo", environment=environment, failure=failure)
    try:
        logins: dict[str, str] = json.loads(output)
    except ValueError:
        raise CannotStart(f"{failure}\n{output.strip()}") from None
    return logins


def _read(data: DataDirectory) -> dict[str, str]:
    """Read the logins; without logins.json, demo.json still has all but the staff login."""
    for path in (data.logins, data.demo):
        try:
            logins: dict[str, Any] = json.loads(path.read_text())
        except (FileNotFoundError, ValueError):
            continue
        if all(name in logins for name in ACCOUNT_KEYS):
            return logins
    raise CannotStart(f"Could not read {data.demo}. Remove it to create a new demo account.")


def _as_text(values: Mapping[str, str]) -> str:
    return json.dumps(values, indent=2, ensure_ascii=False) + "\n"
