"""A worker process that reads received messages until the queue is empty; some messages end it.

`python -m tests.receiving.reading_worker` prints a line when it begins. A message with the field X-Ends kills the
process that reads its parts, as an error in a C library would; with `X-Ends: header`, each process that reads it.
"""

import os
import signal
import sys

import django

django.setup()

from core.lib.worker.processor import QueueProcessor  # noqa: E402
from receiving import received_work  # noqa: E402
from receiving.reading import header_process  # noqa: E402
from receiving.received_work import ReceivedQueueWork  # noqa: E402

FIELD = b"X-Ends: "
read_received = received_work.read_received


def read_or_die(source: bytes, **options):
    if source.startswith(FIELD):
        os.kill(os.getpid(), signal.SIGKILL)
    return read_received(source, **options)


def read_header_or_die(header: bytes, **options):
    if header.startswith(FIELD + b"header"):
        header_process.COMMAND = ["sh", "-c", "kill -9 $$"]
    return header_process.read_header_apart(header, **options)


if __name__ == "__main__":
    received_work.read_received = read_or_die
    received_work.read_header_apart = read_header_or_die
    sys.stdout.write("begins\n")
    sys.stdout.flush()
    QueueProcessor(ReceivedQueueWork()).run()
