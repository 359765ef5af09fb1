"""Compare how bounces of a corpus are read with the results of Sisimai, for each failed recipient.

    python -m tools.bounce_corpus RESULTS.json [HARD SOFT]

RESULTS.json: the output of `Sisimai->dump(DIRECTORY, delivered => 0)`, which names each file. HARD and SOFT are the
kinds of a difference to list: `hard soft` lists the recipients that Sisimai calls hard and Postrider soft.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from interfaces.inbound.reports.reading import read_report
from interfaces.inbound.reports.report import RecipientStatus, Report, ReportKind

NO_FAILURES = frozenset({"feedback", "vacation", "delivered"})
FAILURES = frozenset({ReportKind.BOUNCE, ReportKind.DELAY})


def compare(results: list[Mapping[str, Any]]) -> Iterator[tuple[str, str, Mapping[str, Any], RecipientStatus]]:
    """Yield Sisimai's kind, ours, its result, and our status of the recipient, for each failure in the results."""
    reports = {path: read_report(Path(path).read_bytes()) for path in {result["origin"] for result in results}}
    for result in results:
        if result["reason"] not in NO_FAILURES:
            status = _status_of(reports[result["origin"]], {result["recipient"].lower(), result["alias"].lower()})
            yield "hard" if result["hardbounce"] else "soft", _kind(status), result, status


def _status_of(report: Report, addresses: set[str]) -> RecipientStatus:
    named = (one for one in report.recipient_statuses if addresses & {address.lower() for address in one.recipients})
    return next(named, report.most_severe)


def _kind(status: RecipientStatus) -> str:
    if status.kind not in FAILURES:
        return "not read"
    return "hard" if status.is_hard else "soft"


def main() -> None:
    """Print the number of failures of each pair of kinds, and the differences of the pair in the arguments."""
    compared = list(compare(json.loads(Path(sys.argv[1]).read_text())))
    for (theirs, ours), count in sorted(Counter((theirs, ours) for theirs, ours, *_ in compared).items()):
        sys.stdout.write(f"{count:5} {theirs} {ours}\n")
    for theirs, ours, result, status in compared:
        if sys.argv[2:] == [theirs, ours]:
            sys.stdout.write(f"{result['origin']}: {result['reason']}: {status.reason}: {status.diagnostic[:200]}\n")


if __name__ == "__main__":
    main()
