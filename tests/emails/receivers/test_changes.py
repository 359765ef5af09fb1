"""What the staff changes about the pace of a receiver, and the command for it (docs/decisions/0363)."""

from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from core.delivery.pacing.pairs import LEASE_SECONDS
from core.workspaces.models import AuditEntry
from emails.models import ReceiverPace
from emails.pacing.paces import PairWait, read_wait, release_due
from emails.receivers.changes import pin_rate, release_pair, suspend_pair, unpin_rate
from tests.emails.builders import accept
from tests.emails.pacing.test_paces import KEY, hold, make_release_due, ready, report, slow
from tests.emails.receivers.builders import make_limited, make_pair, make_suspended, name_new_address

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _direct(settings):
    settings.DELIVERY_TRANSPORT = "direct"


def acts():
    entries = AuditEntry.objects.filter(workspace=None, act__startswith="receiver_")
    return list(entries.order_by("id").values_list("act", "about"))


class TestSuspension:
    def test_stops_all_processes_and_all_that_waits_until_it_is_released(self, workspace):
        accept(workspace, count=3)
        pair = make_pair(KEY.receiver)
        hold(pair.id)
        suspend_pair(pair)
        suspend_pair(pair)
        assert report().suspended == LEASE_SECONDS
        assert (release_due(), ready().count()) == (True, 0)
        release_pair(pair)
        assert report().suspended == 0
        make_release_due()
        release_due()
        assert ready().count() == 3
        about = "google from 192.0.2.1"
        assert acts() == [("receiver_suspended", about), ("receiver_released", about)]

    def test_by_a_reply_ends_too(self):
        pair = make_suspended(KEY.receiver)
        # A process asks again within the time of a lease: the staff may have ended it.
        assert report().suspended == LEASE_SECONDS
        release_pair(pair)
        grant = report()
        assert (grant.suspended, grant.is_limited, grant.connections) == (0, False, 1)

    def test_is_not_repeated_by_messages_that_were_being_sent_at_the_release(self):
        pair = make_suspended(KEY.receiver)
        release_pair(pair)
        make_suspended(KEY.receiver, began=5.0)
        assert report().suspended == 0
        make_suspended(KEY.receiver)
        assert report().suspended == LEASE_SECONDS


class TestRate:
    def test_is_forgotten_by_a_release(self):
        slow()
        release_pair(ReceiverPace.objects.get())
        assert not report().is_limited

    def test_is_pinned_in_place_of_the_learnt_one(self):
        pair = make_limited(KEY.receiver)
        pin_rate(pair, per_minute=600)
        assert read_wait(pair.id) == PairWait("google", 600)
        release_pair(pair)
        assert read_wait(pair.id) == PairWait("google", 600)
        unpin_rate(pair)
        unpin_rate(pair)
        assert read_wait(pair.id) == PairWait("google")
        assert acts()[0] == ("receiver_pinned", "google from 192.0.2.1: 600 a minute")
        assert [act for act, _ in acts()] == ["receiver_pinned", "receiver_released", "receiver_unpinned"]

    def test_a_deleted_pair_is_nobodys_concern(self):
        pair = make_pair(KEY.receiver)
        ReceiverPace.objects.all().delete()
        for change in (suspend_pair, release_pair, unpin_rate):
            change(pair)
        assert acts() == []


class TestCommand:
    def run(self, *args):
        output = StringIO()
        call_command("receivers", *args, stdout=output)
        return output.getvalue()

    def test_lists_pairs(self):
        make_limited("google", accepted=7)
        make_pair("mx.example", source="")
        heading, google, other = self.run("list").splitlines()
        assert heading.split()[:3] == ["receiver", "source", "state"]
        assert google.split()[:3] == ["google", "192.0.2.1", "limited"]
        assert google.endswith("421 4.7.28 Gmail has detected an unusual rate")
        assert other.split()[:3] == ["mx.example", "any", "learning"]
        assert len(self.run("list", "--state", "limited").splitlines()) == 2
        assert len(self.run("list", "--receiver", "mx.").splitlines()) == 2

    def test_lists_the_day_of_a_new_address(self, settings):
        name_new_address(settings, days=2)
        make_pair("mx.example", accepted=7)
        ReceiverPace.objects.update(former_rate=60)
        (_, pair) = self.run("list").splitlines()
        assert "learning (listed)" in pair
        assert "day 3, 100 messages" in pair

    def test_changes_all_sources_of_a_receiver_or_one(self):
        for source in ("192.0.2.1", "192.0.2.2"):
            make_pair("google", source=source)
        make_pair("yahoo")
        assert "google from 192.0.2.2" in self.run("suspend", "google")
        assert ReceiverPace.objects.filter(stopped_at__isnull=False).count() == 2
        self.run("release", "google", "--source", "192.0.2.1")
        assert ReceiverPace.objects.get(stopped_at__isnull=False).source == "192.0.2.2"
        self.run("pin", "yahoo", "30")
        assert ReceiverPace.objects.get(receiver="yahoo").pinned == 30
        self.run("unpin", "yahoo")
        assert ReceiverPace.objects.get(receiver="yahoo").pinned is None
        assert {entry.actor_kind for entry in AuditEntry.objects.all()} == {"service"}

    @pytest.mark.parametrize("rate", ["0", "1000001"])
    def test_refuses_a_rate_that_cannot_be(self, rate):
        make_pair("google")
        with pytest.raises(CommandError, match="from 1 to 1000000"):
            self.run("pin", "google", rate)

    def test_refuses_a_receiver_that_nothing_was_sent_to(self):
        with pytest.raises(CommandError, match="No email has been sent to 'gogle'"):
            self.run("suspend", "gogle")

    def test_still_prints_the_table(self):
        assert "google" in self.run("check")
