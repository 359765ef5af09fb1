"""The real queue processors, run once in a thread beside Chromium."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection

from core.delivery.transports.relay import inbox_transport
from core.lib.network.address_guard import Guard
from core.lib.network.resolver import Resolver
from core.lib.network.target_urls import UrlRules
from core.lib.worker.event_loop import network_loop
from core.lib.worker.processor import QueueProcessor
from emails.sending.emails_work import EmailQueueWork
from interfaces.inbound.inbox import server as inbox_server
from tests.stack.stack import free_port, listens, wait_for
from webhooks.sending.post import Poster
from webhooks.sending.webhooks_work import WebhookQueueWork


@contextmanager
def inbox() -> Iterator[int]:
    """Run the built-in inbox in the network event loop; yield its port."""
    port = free_port()
    serving = asyncio.run_coroutine_threadsafe(inbox_server.serve(port), network_loop())
    wait_for(lambda: listens(port), seconds=60, what="the inbox listens")
    yield port
    serving.cancel()


def run_in_thread(work) -> None:
    """Run in a separate thread: the test thread runs playwright's event loop."""
    failures: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as failure:  # noqa: BLE001 - reported by the test thread
            failures.append(failure)
        finally:
            connection.close()

    thread = threading.Thread(target=guarded)
    thread.start()
    thread.join(60)
    assert not thread.is_alive()
    assert not failures, failures


def deliver_to_inbox() -> None:
    """Send all due emails to the built-in inbox."""
    with inbox() as port:
        run_in_thread(QueueProcessor(EmailQueueWork(inbox_transport(port=port, ehlo_name="localhost"), sessions=4)).run)


def send_due_events() -> None:
    """Send all due webhook events."""

    def work() -> None:
        resolver = Resolver([("127.0.0.1", 9)], lifetime_seconds=0.2)
        poster = Poster(UrlRules(guard=Guard(allow_private=True)), resolver=resolver)
        QueueProcessor(WebhookQueueWork(poster, sessions=4)).run()
        asyncio.run_coroutine_threadsafe(poster.close(), network_loop()).result(5)

    run_in_thread(work)
