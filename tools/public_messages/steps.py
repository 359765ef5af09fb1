"""Steps of the comparison: reading, submission, and mutations, each of which prints its results."""

import re
import statistics
import time
import traceback
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from interfaces.submission.errors import Refused
from receiving.reading.budget import ProcessorBudget
from receiving.reading.message import read_received
from tools.public_messages.comparison import FIELDS, differences, normal
from tools.public_messages.mutations import mutated
from tools.public_messages.readers import Found, NodeReaders, read_with_postrider, read_with_python
from tools.public_messages.reasons import reason_of
from tools.public_messages.samples import PublicMessage
from tools.public_messages.submission import as_submitted, composed

SHOWN = 160
# Quoted in a refusal: a part of the message.
QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"|\\d+")


def compare(samples: Sequence[PublicMessage], readers: Path) -> None:
    """Compare what Postrider reads with other readers, and print each difference that has no reason."""
    reasons: Counter[tuple[str, str]] = Counter()
    alone: Counter[tuple[str, str]] = Counter()
    seconds: list[tuple[float, str]] = []
    different = 0
    for sample, others in zip(samples, NodeReaders(readers).read([one.source for one in samples]), strict=True):
        ours, spent = read_with_postrider(sample.source)
        seconds.append((spent, sample.name))
        others["python"] = read_with_python(sample.source)
        found, differing = differences(ours, others)
        different += bool(found)
        alone.update((name, field) for name, fields in differing.items() for field in fields)
        for difference in found:
            reason = reason_of(sample, difference, ours, others)
            reasons[difference.field, reason] += 1
            if not reason:
                print(f"{sample.name}\n  {difference.field}: {str(difference.ours)[:SHOWN]!r}")
                for name, value in difference.others.items():
                    print(f"    {name}: {str(value)[:SHOWN]!r}")
    print(f"{different:,} of {len(samples):,} messages differ from all other readers in a field")
    for (field, reason), count in reasons.most_common():
        print(f"{count:6,} {field}: {reason or 'UNEXPLAINED'}")
    print("Fields in which one reader differs, and Postrider agrees with another one:")
    for (name, field), count in sorted(alone.items()):
        print(f"{count:6,} {name} {field}")
    _print_times(seconds)


def submit(samples: Sequence[PublicMessage], readers: Path) -> None:
    """Submit messages, and compare what mailparser and postal-mime find in them before and after."""
    refusals: Counter[str] = Counter()
    accepted: list[tuple[PublicMessage, bytes, bytes]] = []
    for sample in samples:
        source = as_submitted(sample.source)
        try:
            accepted.append((sample, source, composed(source)))
        except Refused as error:
            refusals[QUOTED.sub("…", str(error))] += 1
    print(f"{len(accepted):,} of {len(samples):,} messages are sent")
    for text, count in refusals.most_common():
        print(f"{count:6,} refused: {text}")
    node = NodeReaders(readers)
    before = list(node.read([source for _, source, _ in accepted]))
    after = list(node.read([sent for _, _, sent in accepted]))
    results: Counter[str] = Counter()
    for (sample, _, _), given, sent in zip(accepted, before, after, strict=True):
        different = [changed_fields(given[name], sent[name]) for name in given]
        if not given["postal-mime"].text:
            # The others make a text from the HTML in their ways.
            different = [fields - {"text"} for fields in different]
        if all(different):
            results[
                f"different: {', '.join(sorted(set.intersection(*different)) or ['other fields by each reader'])}"
            ] += 1
            print(f"{sample.name}: {different}")
        else:
            results["equal"] += 1
    for text, count in results.most_common():
        print(f"{count:6,} {text}")


def changed_fields(given: Found, sent: Found) -> set[str]:
    """Return the fields that a reader finds in another form after the submission."""
    return {field for field in FIELDS if field != "names" and normal(given, field) != normal(sent, field)}


def mutate(samples: Sequence[PublicMessage], *, count: int, seed: int) -> None:
    """Read mutations of the messages, and print exceptions and the slowest."""
    sources = [sample.source for sample in samples]
    seconds: list[tuple[float, str]] = []
    failures = 0
    for number, source in enumerate(mutated(sources, count=count, seed=seed)):
        began = time.thread_time()
        try:
            read_received(source, envelope_from="a@b.example", budget=ProcessorBudget())
        except Exception:  # noqa: BLE001 - any exception is the result
            failures += 1
            print(f"mutation {number}: {traceback.format_exc()}")
        seconds.append((time.thread_time() - began, f"mutation {number} ({len(source):,} bytes)"))
    print(f"{count:,} mutations with seed {seed}: {failures} exceptions")
    _print_times(seconds)


def _print_times(seconds: Sequence[tuple[float, str]]) -> None:
    median = statistics.median(spent for spent, _ in seconds)
    print(f"processor time in reading: median {median * 1000:.2f} ms, slowest:")
    for spent, name in sorted(seconds, reverse=True)[:5]:
        print(f"  {spent * 1000:.1f} ms {name}")
