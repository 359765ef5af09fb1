"""Budget of the receiving path: the processor time of each stage, in microseconds per message.

    .venv/bin/python -m tools.benchmarks.inbound.budget [messages]

One process runs the code of the inbound server, then that of a worker, with the functions of each stage wrapped as in
tools.benchmarks.budget. The senders, the name server, the endpoint and PostgreSQL are other processes. The processor
time of all threads that no stage has is listed as the last stage of each part.
"""

import asyncio
import importlib
import multiprocessing
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from core.lib.network.listening import open_sockets
from tests.core.lib.nameserver import NameServer
from tests.stack.stack import Stack, running_stack
from tools.benchmarks.budget import StageTimes, report, started_django
from tools.benchmarks.inbound.messages import SignedMessages
from tools.benchmarks.inbound.senders import deliver
from tools.benchmarks.peers.messages import MessageFiles
from tools.benchmarks.processes import other_process
from tools.benchmarks.sizes import size
from tools.benchmarks.webhooks import receive

STAGES = {
    "RCPT: the recipient": "interfaces.inbound.server:decide",
    "DATA: storing": "interfaces.inbound.routed:store_messages",
    "DATA: bytes": "receiving.content:put",
    "DATA: looking for loops": "interfaces.inbound.routed:is_looping",
    "wake-ups": "core.lib.worker.wakeup:notify",
    "claim": "receiving.received_work:ReceivedQueueWork._claim_messages",
    "claim: loading": "receiving.received_work:ReceivedQueueWork._load",
    "claim: emails to forward": "receiving.received_work:forward_due",
    "reading: fields, texts, attachments": "receiving.received_work:read_or_explain",
    "reading: text of the reply": "receiving.reading.message:find_reply",
    "verifying": "receiving.received_work:verify_origin",
    "verifying: waiting for DNS": "receiving.reading.dns_lookups:MessageLookups.look_up",
    "recording": "receiving.received_work:ReceivedQueueWork.record",
    "recording: events": "receiving.publishing:record_events",
    "sequencing": "events.sequencer:_append_batch",
    "publishing": "webhooks.publishing:_publish_batch",
    "publishing: rendering": "receiving.publishing:_whole",
    "publishing: inserting": "webhooks.publishing:insert_deliveries",
    "posting: claim": "webhooks.sending.webhooks_work:WebhookQueueWork.claim",
    "posting: signing": "webhooks.sending.webhooks_work:format_headers",
    "posting: recording": "webhooks.sending.webhooks_work:WebhookQueueWork.record",
    "database driver": "psycopg:Cursor.execute",
}


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else size(1000, smoke=20)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "files").mkdir()
        messages = SignedMessages(MessageFiles(folder / "files"))
        with other_process(serve_names, messages.zone) as names, other_process(receive) as endpoint:
            limits = {"RECEIVING_DAILY_LIMIT": "1000000", "RECEIVING_STORAGE": str(2**40)}
            settings = {"RECEIVING_DOMAIN": "in.demo.example", "DNS_SERVERS": f"127.0.0.1:{names}", **limits}
            with running_stack(folder, **settings) as stack:
                address = prepare(stack, endpoint)
                with started_django(stack):
                    sources = [*messages.take(count + count // 4, to=address)]
                    times = StageTimes()
                    times.wrap(STAGES)
                    # The first messages only warm up.
                    measure_all(stack, times, sources[count:], address)
                    for title, figures in measure_all(stack, times, sources[:count], address).items():
                        report(f"{title}, per message", figures)


def serve_names(zone: Mapping[str, Any], ports: Connection) -> None:
    with NameServer(zone) as names:
        ports.send(names.address[1])
        threading.Event().wait()


def prepare(stack: Stack, endpoint: int) -> str:
    """Create an endpoint and a route; return the address of the workspace."""
    stack.start("web")
    hook = {"url": f"http://127.0.0.1:{endpoint}/hook", "events": ["received"]}
    assert stack.call("POST", "/webhooks", hook).status == 201
    route = {"name": "Everything", "domain": "shared", "match": "*"}
    assert stack.call("POST", "/inbound/routes", route).status == 201
    address = str(stack.call("GET", "/inbound").body["address"])
    stack.kill("web")
    return address


def measure_all(stack: Stack, times: StageTimes, sources: list[bytes], address: str) -> dict[str, dict[str, float]]:
    """Return microseconds per message by stage, for each part of the path."""
    count = len(sources)
    sys.setswitchinterval(importlib.import_module("config.worker").SWITCH_SECONDS)
    received = importlib.import_module("receiving.received_work").received_processor()
    webhooks = importlib.import_module("webhooks.sending.webhooks_work").webhooks_processor()
    sequence = importlib.import_module("events.sequencer").sequence_events
    publish = importlib.import_module("webhooks.publishing").publish_events
    parts: dict[str, list[Callable[[], None]]] = {
        "receiving": [lambda: receive_all(stack, sources, address)],
        "reading": [received.run],
        "publishing": [sequence, publish],
        "posting": [webhooks.run],
    }
    results = {}
    for title, acts in parts.items():
        times.seconds.clear()
        started = time.process_time()
        for act in acts:
            act()
        whole = time.process_time() - started
        times.seconds["event loop, threads, rest"] = whole - sum(times.seconds.values())
        results[title] = {stage: 1e6 * seconds / count for stage, seconds in times.seconds.items()}
    return results


def receive_all(stack: Stack, sources: list[bytes], address: str) -> None:
    """Receive messages that another process delivers."""
    port = int(stack.environment["INBOUND_PORT"])
    sockets = open_sockets("127.0.0.1", port, setting="INBOUND_PORT")
    senders = multiprocessing.get_context("fork").Process(
        target=lambda: deliver(port, iter(sources), to=address), daemon=True
    )
    senders.start()
    serve = importlib.import_module("interfaces.inbound.server").serve

    async def run() -> None:
        task = asyncio.ensure_future(serve(sockets))
        await asyncio.to_thread(senders.join)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())
    assert senders.exitcode == 0


if __name__ == "__main__":
    main()
