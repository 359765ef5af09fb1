"""What a process has under way frees its place when it is over, also when the database refuses to write it down."""

import pytest
from django.db import DataError, transaction

from delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply
from delivery.transports.relay import inbox_transport
from emails.models import Pending
from emails.sending.outcomes import Result
from emails.sending.sending import Sending
from tests.conftest import Api, mail

pytestmark = pytest.mark.django_db


def test_a_result_that_cannot_be_recorded_leaves_its_place_to_others(api: Api, alice):
    sending = Sending(inbox_transport(port=1, ehlo_name="localhost"), sessions=1)
    api.post("/emails/send", mail())
    (parcel,) = sending.claim(1)
    assert sending.held_back

    impossible = DeliveryOutcome(DeliveryStatus.DEFERRED, Reply(450, "NUL \0 is no text"), "unknown")
    with pytest.raises(DataError), transaction.atomic():
        sending.record([Result(parcel.claim, impossible)])

    Pending.objects.update(stage=Pending.Stage.READY)
    assert [again.key for again in sending.claim(1)] == [parcel.key]
