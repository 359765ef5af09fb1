"""Memory limit: a finished job frees its memory, even if its result cannot be recorded."""

import pytest
from django.db import DataError, transaction

from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply
from core.delivery.transports.relay import inbox_transport
from emails.sending.emails_work import EmailQueueWork
from emails.sending.outcomes import SendResult
from tests.conftest import Api, mail
from tests.emails.builders import make_ready

pytestmark = pytest.mark.django_db


def test_a_result_that_cannot_be_recorded_frees_its_memory(api: Api, alice):
    sending = EmailQueueWork(inbox_transport(port=1, ehlo_name="localhost"), sessions=1)
    api.post("/emails/send", mail())
    claimed = sending.claim(1)
    (job,) = claimed.jobs
    assert claimed.has_waiting

    impossible = DeliveryOutcome(DeliveryStatus.DEFERRED, Reply(450, "NUL \0 is no text"), "unknown")
    with pytest.raises(DataError), transaction.atomic():
        sending.record([SendResult(job.claim, impossible)])

    make_ready()
    assert [again.key for again in sending.claim(1).jobs] == [job.key]
