"""The demo account: made once, shown at every start."""

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from embedded.commands import run_command
from embedded.errors import CannotStart
from embedded.locations import DataDirectory, write_private
from embedded.processes.programs import CREATE_DEMO

ACCOUNT = ("apiKey", "from", "dashboardEmail", "dashboardPassword")


@dataclass(frozen=True)
class Demo:
    """Every login of the demo, and where it lives."""

    base_url: str
    logins: dict[str, str]

    @property
    def inbox_url(self) -> str:
        """Where the emails sent here can be read."""
        return f"{self.base_url}/dashboard/inbox/"

    def as_json(self) -> dict[str, str]:
        """Return the members of demo.json."""
        account = {name: self.logins[name] for name in ACCOUNT}
        return {"baseUrl": self.base_url, **account, "inboxUrl": self.inbox_url}

    def curl(self) -> str:
        """Return a command that sends an email, ready for a shell."""
        email = {
            "from": self.logins["from"],
            "to": "ada@example.com",
            "subject": "Hello from Postrider",
            "html": "<h1>It works</h1>",
        }
        headers = (
            f"Authorization: Bearer {self.logins['apiKey']}",
            "Content-Type: application/json",
        )
        words = ["curl", "-sS", f"{self.base_url}/v1/emails/send"]
        for header in headers:
            words += ["-H", header]
        body = json.dumps(email, separators=(",", ":"), ensure_ascii=False)
        return shlex.join([*words, "-d", body])


def prepare_demo(data: DataDirectory, base_url: str, environment: Mapping[str, str]) -> Demo:
    """Return the demo account, made now when there is no demo.json; its URL is the one of today."""
    if not data.demo.exists():
        write_private(data.logins, _as_text(_create(environment)))
    demo = Demo(base_url, _read(data))
    write_private(data.demo, _as_text(demo.as_json()))
    return demo


def _create(environment: Mapping[str, str]) -> dict[str, str]:
    failure = "The demo account could not be made:"
    answer = run_command(CREATE_DEMO, environment=environment, failure=failure)
    try:
        logins: dict[str, str] = json.loads(answer)
    except ValueError:
        raise CannotStart(f"{failure}\n{answer.strip()}") from None
    return logins


def _read(data: DataDirectory) -> dict[str, str]:
    """Read the logins; a demo.json whose companion is lost still serves, without the staff's."""
    for path in (data.logins, data.demo):
        try:
            found: dict[str, Any] = json.loads(path.read_text())
        except (FileNotFoundError, ValueError):
            continue
        if all(name in found for name in ACCOUNT):
            return found
    raise CannotStart(f"{data.demo} cannot be read: remove it to have a new demo account made.")


def _as_text(facts: Mapping[str, str]) -> str:
    return json.dumps(facts, indent=2, ensure_ascii=False) + "\n"
