"""Counter of the submission server's replies for `/metrics` of web.

With PROMETHEUS_MULTIPROC_DIR set to a directory that both share, each process writes to a separate file, and web reads
all files (api.latency).
"""

from prometheus_client import CollectorRegistry, Counter

registry = CollectorRegistry()
_replies = Counter(
    "postrider_submission_replies",
    "Replies of the submission server to AUTH, MAIL, RCPT and the message (DATA), by code.",
    ["command", "code"],
    registry=registry,
)


def count_reply(command: str, reply: str) -> None:
    _replies.labels(command, reply[:3]).inc()
