"""Messages that take long to compose do not hold up the deliveries beside them."""

import asyncio
import time

import pytest

from core.delivery.transports.smtp.mail_host import Timeouts
from emails.sending.emails_work import EmailQueueWork
from emails.sending.jobs import SendJob
from emails.sending.outgoing_messages import build_message, is_large
from tests.conftest import Api, mail
from tests.core.delivery.relaying import relay, run
from tests.core.delivery.scripted import ScriptedServer, StubLease
from tests.rows import each

pytestmark = pytest.mark.django_db

# Close to 1 MiB, the largest HTML that is accepted.
MANY_LINKS = '<a href="http://a.b">' * 49_000


def claim_job(api: Api, body) -> tuple[EmailQueueWork, SendJob]:
    """Accept an email; return queue work and the send job that it claimed."""
    assert api.post("/emails/send", body).status_code == 202
    work = EmailQueueWork(relay(ScriptedServer()), sessions=1)
    (job,) = work.claim(1).jobs
    return work, job


async def deliver(work: EmailQueueWork, job: SendJob) -> float:
    """Deliver a job; return the longest time, in seconds, that it held the loop."""
    longest = 0.0

    async def watch() -> None:
        nonlocal longest
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0.001)
            longest = max(longest, time.perf_counter() - before)

    async with ScriptedServer(extensions=()) as server:
        watching = asyncio.create_task(watch())
        work._transport = relay(server, timeouts=Timeouts())
        result = await work.perform(job, StubLease())
        watching.cancel()
        assert result.outcome.reason == ""
        assert len(server.messages) == 1
    return longest


def wait_of_the_loop(work: EmailQueueWork, job: SendJob) -> float:
    """Return the longest wait in the best of three deliveries, since other programs hold the loop, too."""
    return min(run(deliver(work, job)) for _ in range(3))


def test_the_largest_email_does_not_hold_the_loop(api: Api):
    work, job = claim_job(api, mail(html=MANY_LINKS))
    started = time.perf_counter()
    build_message(job).to_bytes()
    alone = time.perf_counter() - started
    # What is found once per content is cached; composing and signing remain.
    assert wait_of_the_loop(work, job) < alone


def test_large_attachments_do_not_hold_the_loop(api: Api):
    content = "QUFB" * (10 * 1024 * 1024 // 3)
    work, job = claim_job(api, mail(attachments=[{"filename": "a.bin", "content": content}]))
    started = time.perf_counter()
    build_message(job).to_bytes()
    alone = time.perf_counter() - started
    assert wait_of_the_loop(work, job) < alone


@each(("html", "data", "expected"), [
    ("<p>{{name}}</p>" * 100, {"name": "Ada"}, False),
    ("<p>{{name}}</p>" * 100, {"name": "Ada" * 1000}, True),
    ("<p>{{name}}</p>" * 10_000, {}, True),
    ("{{#each a}}{{#each b}}x{{/each}}{{/each}}", {"a": [1, 2], "b": [1, 2]}, True),
])  # fmt: skip
def test_the_cost_of_a_template_is_estimated_before_it_is_rendered(api: Api, html, data, expected):
    api.post("/templates", {"name": "T", "alias": "t", "subject": "S", "htmlContent": html})
    _, job = claim_job(api, mail(html=None, templateId="t", templateData=data))
    assert is_large(job) is expected


@each(("html", "expected"), [("<p>Hi</p>", False), ("<p>Hi</p>" * 10_000, True)])
def test_the_cost_of_content_is_its_length(api: Api, html, expected):
    _, job = claim_job(api, mail(html=html))
    assert is_large(job) is expected
