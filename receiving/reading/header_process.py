"""The header of a message that ended its workers, read in a process that may end as well (docs/decisions/0230).

`python -m receiving.reading.header_process` reads the envelope sender, a null byte and the header from its input, and
writes JSON. It uses no database, no setting and no secret.
"""

import json
import logging
import resource
import subprocess
import sys
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any

from core.lib.mail.address_lists import Mailbox
from receiving.reading.message import Reading, read_header
from receiving.states import Automatic

log = logging.getLogger("postrider.receiving")

# The start of Python takes most of them.
CPU_SECONDS = 10
MEMORY_BYTES = 512 * 1024 * 1024
# A machine that other programs keep busy needs more than the processor time.
TIMEOUT_SECONDS = 30.0
MAX_OUTPUT_BYTES = 8 * 1024 * 1024
LIMITS = {
    resource.RLIMIT_CPU: CPU_SECONDS,
    resource.RLIMIT_AS: MEMORY_BYTES,
    resource.RLIMIT_CORE: 0,
    resource.RLIMIT_FSIZE: 0,
}
REPOSITORY = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "receiving.reading.header_process"]


def read_header_apart(header: bytes, *, envelope_from: str) -> Reading | None:
    """Return the reading of a header; None if the process that reads it ends without one. Blocks up to TIMEOUT_SECONDS.

    header: the first bytes of a message. The process has LIMITS and no environment.
    """
    given = b"\0".join([envelope_from.encode(), header])
    try:
        ended = subprocess.run(
            COMMAND, cwd=REPOSITORY, env={}, input=given, capture_output=True, timeout=TIMEOUT_SECONDS, check=True
        )
        return _from_json(json.loads(ended.stdout))
    except (subprocess.SubprocessError, OSError, ValueError, KeyError, TypeError) as error:
        log.warning("the header of a message could not be read", extra={"data": {"error": type(error).__name__}})
        return None


def main() -> None:
    for kind, limit in LIMITS.items():
        resource.setrlimit(kind, (limit, limit))
    envelope_from, _, header = sys.stdin.buffer.read().partition(b"\0")
    reading = read_header(header, envelope_from=envelope_from.decode())
    output = json.dumps(asdict(reading) | {"date": reading.date and reading.date.isoformat()})
    if len(output) > MAX_OUTPUT_BYTES:
        sys.exit("The header is too large")
    sys.stdout.write(output)


def _from_json(values: dict[str, Any]) -> Reading:
    mailboxes = {name: [Mailbox(**one) for one in found] for name, found in values["mailboxes"].items()}
    return Reading(
        **values
        | {
            "senders": [Mailbox(**one) for one in values["senders"]],
            "mailboxes": mailboxes,
            "date": values["date"] and datetime.fromisoformat(values["date"]),
            "automatic": Automatic(values["automatic"]),
        }
    )


if __name__ == "__main__":
    main()
