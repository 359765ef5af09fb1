"""Receivers page of the staff admin (docs/decisions/0363)."""

import re
from functools import partial
from html import escape

import pytest
from django.contrib.auth.models import Permission

from core.delivery.transports.tls_policies.sts_lookups import StsFinding
from core.delivery.transports.tls_policies.sts_policy import StsMode, StsPolicy
from core.workspaces.models import AuditEntry, User
from emails.models import ReceiverPace
from emails.receivers.changes import suspend_pair
from emails.tls_policies.store import save_finding
from tests.conftest import make_domain
from tests.console.dashboard.conftest import shown_text, signed_in
from tests.emails.builders import accept
from tests.emails.pacing.test_paces import hold
from tests.emails.receivers.builders import REPLY, make_limited, make_pair, make_suspended, name_new_address

RECEIVERS = "/admin/receivers/"
HOSTILE = "421 4.7.0 <script>alert(1)</script>"


@pytest.fixture
def pairs(db):
    return {
        "limited": make_limited("google", accepted=1207),
        "suspended": make_suspended("yahoo"),
        "learning": make_pair("mx.example", source=""),
        "stopped": make_pair("apple"),
    }


@pytest.fixture
def new_address(settings):
    name_new_address(settings, days=2)
    return partial(name_new_address, settings)


def row(response, name):
    text = response.content.decode()
    (found,) = [part for part in text.split("<tr>")[1:] if f'">{name} ' in part or f">{name}<" in part]
    return " ".join(re.sub("<[^>]*>", " ", found.partition("</tr>")[0]).split())


def url(pair, action):
    return f"{RECEIVERS}{pair.id}/{action}/"


class TestPage:
    def test_shows_the_state_and_its_cause(self, staff, pairs, alice):
        suspend_pair(pairs["stopped"])
        make_domain(alice.workspace, f"{alice.workspace.name}.example")
        accept(alice.workspace, count=3)
        hold(pairs["limited"].id)
        page = staff.get(RECEIVERS)
        google = row(page, "Google")
        assert "192.0.2.1 Limited" in google
        assert REPLY in google
        assert "3 1,207 / 1 Suspend" in google
        assert google.endswith("Suspend Google 192.0.2.1 Release Google 192.0.2.1 Set a rate Google 192.0.2.1")
        assert "Suspended by the receiver until" in row(page, "Yahoo")
        assert "Suspended by the staff" in row(page, "Apple")
        assert "Suspend Apple" not in row(page, "Apple")
        learning = row(page, "mx.example")
        assert "Learning" in learning
        assert "no limit 0 0 / 0" in learning
        assert "Release" not in learning

    def test_shows_the_day_of_a_new_address_and_a_listing(self, staff, pairs, new_address):
        google = row(staff.get(RECEIVERS), "Google")
        assert "Limited" in google
        assert "New address, day 3: 1,207 of 100 messages" in google
        assert "New address" not in row(staff.get(RECEIVERS), "mx.example")
        ReceiverPace.objects.filter(receiver="google").update(former_rate=60)
        assert " listed New address, day 3" in row(staff.get(RECEIVERS), "Google")
        new_address(days=-1)
        assert "New address, before its first day" in row(staff.get(RECEIVERS), "Apple")

    def test_filters_by_receiver_and_state(self, staff, pairs):
        def shown(**query):
            return [one.receiver for one, *_ in staff.get(RECEIVERS, query).context["rows"]]

        assert shown(receiver="Goog") == ["google"]
        assert shown(state="suspended") == ["yahoo"]
        assert shown(state="limited", receiver="yahoo") == []
        assert len(shown(state="nothing")) == 4
        assert "No receivers match" in shown_text(staff.get(RECEIVERS, {"receiver": "x" * 300}))

    def test_says_that_others_are_not_shown(self, staff, pairs, monkeypatch):
        monkeypatch.setattr("console.dashboard.staff.receivers.MAX_ROWS", 3)
        page = staff.get(RECEIVERS)
        assert len(page.context["rows"]) == 3
        assert "Only 3 are shown." in shown_text(page)

    def test_explains_an_empty_list(self, staff):
        assert "Nothing was sent to receivers yet" in shown_text(staff.get(RECEIVERS))

    def test_escapes_replies(self, staff, pairs):
        ReceiverPace.objects.update(signal=HOSTILE)
        assert "<script>alert" not in staff.get(RECEIVERS).content.decode()

    def test_cells_are_labelled_for_phones_in_german(self, staff, pairs):
        User.objects.filter(is_staff=True).update(language="de")
        content = staff.get(RECEIVERS).content.decode()
        (table,) = re.findall('<table class="pr-headers pr-data pr-tight">.*?</table>', content, re.DOTALL)
        columns = re.findall(r'<th scope="col"[^>]*>(.*?)</th>', table)
        assert re.findall('<td data-label="(.*?)"', table) == columns * (table.count("<tr>") - 1)
        assert {"Empfangsdienst", "Heute angenommen und gebremst", "Aktionen"} <= set(columns)
        assert "Vom Empfangsdienst ausgesetzt" in table


class TestActions:
    def test_are_confirmed_and_audited(self, staff, pairs):
        pair = pairs["learning"]
        asked = staff.get(url(pair, "suspend"))
        assert "No further email leaves for this receiver" in shown_text(asked)
        assert not ReceiverPace.objects.filter(stopped_at__isnull=False).exists()

        assert staff.post(url(pair, "suspend")).url == RECEIVERS
        assert ReceiverPace.objects.get(stopped_at__isnull=False) == pair
        assert "the learnt rate is forgotten" in shown_text(staff.get(url(pair, "release")))
        staff.post(url(pair, "release"))
        assert not ReceiverPace.objects.filter(stopped_at__isnull=False).exists()
        entries = AuditEntry.objects.filter(act__startswith="receiver_").order_by("id")
        assert [(one.act, one.about, one.actor_kind, one.workspace) for one in entries] == [
            ("receiver_suspended", "mx.example from any address", "staff", None),
            ("receiver_released", "mx.example from any address", "staff", None),
        ]

    def test_set_a_rate_and_let_it_be_learnt_again(self, staff, pairs):
        pair = pairs["limited"]
        assert staff.post(url(pair, "pin"), {"per_minute": "30"}).url == RECEIVERS
        assert ReceiverPace.objects.get(id=pair.id).pinned == 30
        assert "30 set" in row(staff.get(RECEIVERS), "Google")
        assert 'value="30"' in staff.get(url(pair, "pin")).content.decode()
        staff.post(url(pair, "pin"), {"per_minute": ""})
        assert ReceiverPace.objects.get(id=pair.id).pinned is None

    @pytest.mark.parametrize("rate", ["0", "-1", "1000001", "2.5", "many"])
    def test_refuse_a_rate_that_cannot_be(self, staff, pairs, rate):
        response = staff.post(url(pairs["limited"], "pin"), {"per_minute": rate})
        assert response.status_code == 200
        assert response.context["form"].errors
        assert ReceiverPace.objects.get(receiver="google").pinned is None

    def test_of_a_deleted_pair_are_not_found(self, staff, pairs):
        for action in ("suspend", "release", "pin"):
            assert staff.post(f"{RECEIVERS}999999/{action}/").status_code == 404


class TestPermissions:
    def test_of_viewing_do_not_change(self, helper, pairs):
        assert signed_in(helper).get(RECEIVERS).status_code == 403
        helper.user_permissions.add(Permission.objects.get(codename="view_receiverpace"))
        client = signed_in(helper)
        page = client.get(RECEIVERS)
        assert page.status_code == 200
        assert "Set a rate" not in shown_text(page)
        for action in ("suspend", "release", "pin"):
            assert client.post(url(pairs["limited"], action), {"per_minute": "5"}).status_code == 403
        assert not AuditEntry.objects.filter(act__startswith="receiver_").exists()

    def test_of_others_lead_to_the_sign_in(self, client, pairs):
        assert client.get(RECEIVERS).status_code == 302
        assert client.post(url(pairs["limited"], "suspend")).status_code == 302
        assert not ReceiverPace.objects.filter(stopped_at__isnull=False).exists()


class TestPolicies:
    def test_are_shown_with_the_reason_that_one_could_not_be_read(self, staff, pairs):
        policy = StsFinding(StsPolicy(StsMode.ENFORCE, ("mx.mail.example", "*.mail.example"), 86_400), "1")
        for domain in ("fine.example", "broken.example"):
            save_finding(domain, policy)
        save_finding("broken.example", StsFinding(error=HOSTILE))
        save_finding("without.example", StsFinding())
        page = staff.get(RECEIVERS)
        text = shown_text(page)
        assert "fine.example enforce mx.mail.example, *.mail.example" in text
        assert text.index("broken.example") < text.index("fine.example")
        assert f"The policy could not be read again: {escape(HOSTILE)}" in text
        assert "<script>alert" not in page.content.decode()
        assert "without.example" not in text
        assert "broken.example" not in shown_text(staff.get(f"{RECEIVERS}?receiver=fine"))

    def test_are_left_out_without_any(self, staff, pairs):
        assert "MTA-STS" not in shown_text(staff.get(RECEIVERS))
