"""oidc-provider, a certified provider on Node, as the identity provider of a test."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.stack.servers import running_server
from tests.stack.stack import free_port
from tests.standards.tools import npm_modules, program

SCRIPT = Path(__file__).with_name("provider.mjs")
# The latest version that runs on Debian 12's Node.
MODULE = "oidc-provider@8.8.1"
CLIENT_ID = "postrider"
CLIENT_SECRET = "a client secret of 32 characters"


class RealProvider:
    """A running provider. people: their claims by name, which is the subject and the login; any password is right."""

    def __init__(self, file: Path, *, public_url: str) -> None:
        self.port = free_port()
        self.issuer = f"http://127.0.0.1:{self.port}"
        self.people: dict[str, dict[str, Any]] = {}
        self._file, self._public_url = file, public_url
        self.save()

    def save(self) -> None:
        """Make a change of the people known."""
        configuration = {"issuer": self.issuer, "port": self.port, "people": self.people, "client": self._client()}
        temporary = self._file.with_suffix(".new")
        temporary.write_text(json.dumps(configuration), encoding="utf-8")
        temporary.replace(self._file)

    def set_person(self, name: str, **claims: Any) -> None:
        self.people[name] = claims
        self.save()

    def _client(self) -> dict[str, Any]:
        sites = [f"{self._public_url}/{site}" for site in ("dashboard", "admin")]
        return {
            "client_id": CLIENT_ID,
            "client_secret": CLIENT_SECRET,
            "redirect_uris": [f"{site}/oidc/callback" for site in sites],
            "post_logout_redirect_uris": [f"{site}/login/" for site in sites],
            "backchannel_logout_uri": f"{self._public_url}/oidc/backchannel",
            "backchannel_logout_session_required": True,
        }


@contextmanager
def running_provider(directory: Path, *, public_url: str) -> Iterator[RealProvider]:
    entry = npm_modules(MODULE) / "oidc-provider" / "lib" / "index.js"
    provider = RealProvider(directory / "provider.json", public_url=public_url)
    command = [program("node", package="nodejs"), str(SCRIPT), str(entry), str(directory / "provider.json")]
    log = directory / "provider.log"
    with running_server(command, is_ready=lambda: "ready" in log.read_text(), log=log):
        yield provider
