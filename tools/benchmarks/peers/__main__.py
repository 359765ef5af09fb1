"""Benchmark of Postrider and programs that do the same work: accept, sign with RSA-2048, deliver.

    .venv/bin/python -m tools.benchmarks.peers [--rounds 3] [--emails 2000]

All programs run all the time and work in turn, so that other programs on the machine affect all alike; each ratio is
between two results of one round, and the table has its median, lowest and highest. After each measurement, all
messages must have arrived at the sink with a signature, and dkimpy verifies 200 of them. PostgreSQL flushes to disk,
as the mail servers do. Missing peers are installed: Debian's postfix and opendkim (as root), Haraka from npm,
django-post-office from PyPI. Requires wrk.
"""

import argparse
import os
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.stack.stack import Stack, running_stack
from tools.benchmarks import accept
from tools.benchmarks.figures import record_figure, record_rounds
from tools.benchmarks.peers.mail_servers import haraka, measure_mail_server, postfix_with_opendkim
from tools.benchmarks.peers.messages import SELECTOR, MessageFiles
from tools.benchmarks.peers.post_office_runs import PostOffice, install_post_office
from tools.benchmarks.peers.postrider import (
    PATIENT,
    PostriderRun,
    measure_delays,
    percentile,
    running_postrider,
    running_with_inbox,
)
from tools.benchmarks.peers.received import ReceivedMail
from tools.benchmarks.peers.signatures import signature_seconds
from tools.benchmarks.processes import assert_flushes
from tools.benchmarks.sinks import delayed_smtp_sink, smtp_sink
from tools.benchmarks.sizes import size

SINGLE_SECONDS = size(5, smoke=1)
DELAYED_PEER_EMAILS = size(200, smoke=5)
DELAYS_PER_ROUND = size(40, smoke=5)
DELAY_PAUSE_SECONDS = 0.1
# Rows of the table: by the name of a ratio, its two rates and its aim.
RATIOS = {
    "single emails accepted over HTTP and delivered : Postfix with OpenDKIM": ("single", "postfix", 1),
    "batches of 500 accepted and delivered : Postfix with OpenDKIM": ("batches", "postfix", 3),
    "sending from a filled queue : Postfix with OpenDKIM": ("queue", "postfix", 5),
    "sending from a filled queue : Haraka, two processes": ("queue", "haraka", 3),
    "sending from a filled queue : django-post-office and Postfix with OpenDKIM": ("queue", "post_office", 4),
    "sending with round trips of 100 ms : django-post-office, 2 processes with 32 threads": (
        "far",
        "far_post_office",
        30,
    ),
    "requests accepted : plain DRF view with the same writes": ("accept", "plain", 4),
}
RATES = {
    "single": "single emails accepted over HTTP and delivered",
    "batches": "emails of batches accepted and delivered",
    "queue": "emails sent from a filled queue",
    "far": "emails sent with round trips of 100 ms",
    "postfix": "Postfix with OpenDKIM, accepted and delivered",
    "haraka": "Haraka, accepted and delivered",
    "post_office": "django-post-office through Postfix with OpenDKIM",
}


@dataclass(frozen=True)
class Peers:
    """All running programs and the directories of their sinks."""

    files: MessageFiles
    near: PostriderRun
    far: PostriderRun
    inbox: Stack
    accepting: Stack
    near_mail: ReceivedMail
    far_mail: ReceivedMail
    far_port: int
    postfix_port: int
    haraka_port: int

    def measure_round(self, emails: int) -> Iterator[tuple[str, float]]:
        """Yield the rates of one round, and the times of the queue path in seconds per email."""
        yield "single", self.near.measure_single(seconds=SINGLE_SECONDS)
        yield "postfix", self._mail_server(self.postfix_port, emails)
        rate, worker_seconds = self.near.measure_queue(emails)
        signature = signature_seconds()
        yield from {"queue": rate, "signature": signature, "python": worker_seconds - signature}.items()
        yield "haraka", self._mail_server(self.haraka_port, emails)
        yield "batches", self.near.measure_batches(emails)
        yield "post_office", self._post_office(PostOffice(), self.near_mail, self.postfix_port, count=emails // 2)
        yield "far", self.far.measure_queue(emails)[0]
        signing = PostOffice(signs=True)
        yield "far_post_office", self._post_office(signing, self.far_mail, self.far_port, count=DELAYED_PEER_EMAILS)
        yield "accept", accept.measure(self.accepting, self.accepting.logs)["rate"]
        plain = {"DJANGO_SETTINGS_MODULE": "tools.benchmarks.plain_settings"}
        yield "plain", accept.measure(self.accepting, self.accepting.logs, **plain)["rate"]

    def measure_delays(self) -> list[float]:
        return measure_delays(self.inbox, count=DELAYS_PER_ROUND, pause_seconds=DELAY_PAUSE_SECONDS)

    def _mail_server(self, port: int, emails: int) -> float:
        return measure_mail_server(port, self.files, self.near_mail, count=emails, callers=accept.CONCURRENCY)

    def _post_office(self, peer: PostOffice, received: ReceivedMail, port: int, *, count: int) -> float:
        return peer.measure(self.files, received, smtp_port=port, count=count)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.benchmarks.peers")
    parser.add_argument("--rounds", type=int, default=size(3, smoke=1))
    parser.add_argument("--emails", type=int, default=size(2000, smoke=50), help="emails of each measurement")
    options = parser.parse_args()
    print(f"load average before: {os.getloadavg()[0]:.1f}", flush=True)
    rounds: dict[str, list[float]] = defaultdict(list)
    delays: list[float] = []
    with running_peers() as peers:
        for number in range(1, options.rounds + 1):
            print(f"round {number}, load average {os.getloadavg()[0]:.1f}", flush=True)
            for name, value in peers.measure_round(options.emails):
                print(f"  {name}: {value:.4g}", flush=True)
                rounds[name].append(value)
            delays = peers.measure_delays()
    report(rounds, delays)


@contextmanager
def running_peers() -> Iterator[Peers]:
    """Start everything. Raises AssertionError unless PostgreSQL flushes to disk."""
    memory = Path("/dev/shm")  # noqa: S108 - the sinks' messages, in a new directory
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="postrider-peers-")))
        sinks = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None)))
        for path in (directory, sinks):
            path.chmod(0o755)
        files = MessageFiles(directory / "files")
        files.write()
        install_post_office(files)
        assert_flushes()
        near_mail, far_mail = (ReceivedMail(sinks / name, {SELECTOR: files.public_key}) for name in ("near", "far"))
        near_mail.directory.mkdir()
        far_mail.directory.mkdir()
        near_port = stack.enter_context(smtp_sink(near_mail.directory))
        far_port = stack.enter_context(delayed_smtp_sink(far_mail.directory))
        yield Peers(
            files=files,
            near=stack.enter_context(running_postrider(near_mail.directory, sink_port=near_port)),
            far=stack.enter_context(running_postrider(far_mail.directory, sink_port=far_port)),
            inbox=stack.enter_context(running_with_inbox()),
            accepting=stack.enter_context(running_stack(directory, **PATIENT)),
            near_mail=near_mail,
            far_mail=far_mail,
            far_port=far_port,
            postfix_port=stack.enter_context(postfix_with_opendkim(files, sink_port=near_port)),
            haraka_port=stack.enter_context(haraka(files, sink_port=near_port)),
        )


def report(rounds: dict[str, list[float]], delays: Sequence[float]) -> None:
    for name, label in RATES.items():
        record_rounds(label, rounds[name], "/s")
    for label, (ours, theirs, aim) in RATIOS.items():
        record_rounds(label, quotients(rounds[ours], rounds[theirs]), at_least=aim)
    for name, label in {
        "python": "Python time of the queue path per email",
        "signature": "an RSA-2048 signature",
    }.items():
        record_rounds(label, [1e6 * seconds for seconds in rounds[name]], "us")
    record_rounds("Python time of the queue path : a signature", quotients(rounds["python"], rounds["signature"]))
    for percent, aim in ((50, 40), (99, 120)):
        ms = 1000 * percentile(list(delays), percent)
        record_figure(f"accepted to delivered over the built-in inbox, idle: p{percent}", ms, "ms", at_most=aim)


def quotients(ones: Sequence[float], others: Sequence[float]) -> list[float]:
    return [one / other for one, other in zip(ones, others, strict=True)]


if __name__ == "__main__":
    main()
