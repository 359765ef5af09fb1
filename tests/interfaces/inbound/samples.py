"""Sample reports with the expected result of each, written from the documented formats of mail programs."""

from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent / "samples"
MARK = "===== "


@dataclass(frozen=True)
class Sample:
    """reason: a value of core.delivery.bounces.reasons; empty if the test does not check it."""

    name: str
    kind: str
    recipients: tuple[str, ...]
    reason: str
    is_hard: bool
    source: bytes


def samples() -> list[Sample]:
    """Read all samples, with CRLF line endings."""
    texts = [path.read_text() for path in sorted(FOLDER.glob("*.txt"))]
    return [_sample(piece) for text in texts for piece in ("\n" + text).split("\n" + MARK)[1:]]


def _sample(piece: str) -> Sample:
    first, _, source = piece.partition("\n")
    name, kind, recipients, reason, hardness = (field.strip() for field in first.split("|"))
    ends = b"\r" if "mac line ends" in name else b"\r\n"
    return Sample(
        name=name,
        kind=kind,
        recipients=() if recipients == "-" else tuple(recipients.split()),
        reason="" if reason == "-" else reason,
        is_hard=hardness == "hard",
        source=source.encode().replace(b"\n", ends) + ends,
    )
