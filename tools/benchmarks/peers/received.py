"""Messages that a sink has stored, one file each: counted while they arrive, then verified and removed."""

import random
import re
import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import dkim

from tests.stack.stack import wait_for
from tools.benchmarks.peers.messages import SENDER_DOMAIN

# Verifying a signature takes about as long as delivering an email; all have one, and these are verified.
VERIFIED = 200
SETTLE_SECONDS = 0.5
LIMIT_SECONDS = 600
SIGNATURE = re.compile(rb"^DKIM-Signature:(.*?)^(?![ \t])", re.IGNORECASE | re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class ReceivedMail:
    """The directory of a sink. public_keys: in base64, by selector."""

    directory: Path
    public_keys: Mapping[str, str]

    def count(self) -> int:
        return sum(1 for _ in self.directory.iterdir())

    def wait_until(self, count: int) -> None:
        wait_for(lambda: self.count() >= count, seconds=LIMIT_SECONDS, what=f"{count} messages arrive")

    def take(self, count: int) -> None:
        """Verify that exactly this number of signed messages arrived, and remove them."""
        paths = self._settled()
        assert len(paths) == count, f"{len(paths)} of {count} messages arrived"
        messages = [path.read_bytes() for path in paths]
        for message in messages:
            signature = SIGNATURE.search(message)
            assert signature, message[:2000]
            assert f"d={SENDER_DOMAIN}".encode() in signature[1], signature[1]
        with ProcessPoolExecutor() as pool:
            sample = random.sample(messages, min(VERIFIED, count))
            results = pool.map(partial(verifies, public_keys=dict(self.public_keys)), sample, chunksize=20)
            assert all(results), "a signature does not verify"
        for path in paths:
            path.unlink()

    def _settled(self) -> list[Path]:
        """Return the messages when none grows any more: a file exists from the beginning of its transaction."""
        before: dict[Path, int] = {}
        while (sizes := {path: path.stat().st_size for path in self.directory.iterdir()}) != before:
            before = sizes
            time.sleep(SETTLE_SECONDS)
        return sorted(sizes)


def verifies(message: bytes, *, public_keys: Mapping[str, str]) -> bool:
    """Return whether dkimpy verifies the signature with an RSA key of 2048 bits."""

    def record_of(name: bytes, timeout: int = 5) -> bytes:
        return f"v=DKIM1; k=rsa; p={public_keys[name.decode().partition('.')[0]]}".encode()

    return bool(dkim.verify(message, dnsfunc=record_of, minkey=2048))
