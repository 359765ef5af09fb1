"""Sources of sent emails, read from the inbox of `bin/run`."""

import base64
import email
import email.policy
import json
import os
import subprocess
import time
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
WAIT_SECONDS = 300
DUMP = """
import base64, json
from interfaces.inbound.inbox.models import CaughtMail
rows = CaughtMail.objects.filter(recipient__endswith={domain!r}).values_list("recipient", "source")
print("SOURCES", json.dumps({{name: base64.b64encode(source).decode() for name, source in rows}}))
"""


def read_parts(data_dir: Path, *, domain: str, count: int) -> dict[str, dict[str, str]]:
    """Return the parts of each email to a domain by its recipient, when `count` of them arrived or too late."""
    deadline = time.monotonic() + WAIT_SECONDS
    while len(sources := _dump(data_dir, domain)) < count and time.monotonic() < deadline:
        time.sleep(3)
    return {name: _parts(base64.b64decode(source)) for name, source in sources.items()}


def _dump(data_dir: Path, domain: str) -> dict[str, str]:
    command = [str(REPOSITORY / "bin/manage"), "shell", "-c", DUMP.format(domain=f"@{domain}")]
    done = subprocess.run(command, env=os.environ | {"DATA_DIR": str(data_dir)}, capture_output=True, check=True)
    line = next(line for line in done.stdout.decode().splitlines() if line.startswith("SOURCES "))
    found: dict[str, str] = json.loads(line.removeprefix("SOURCES "))
    return found


def _parts(source: bytes) -> dict[str, str]:
    message = email.message_from_bytes(source, policy=email.policy.default)
    bodies = {"html": message.get_body(("html",)), "text": message.get_body(("plain",))}
    parts = {name: part.get_content() for name, part in bodies.items() if part is not None}
    return {"subject": str(message["Subject"]), **parts}
