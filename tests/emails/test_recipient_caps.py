"""Caps: no recipient gets more emails than the rules of workspace and key allow (docs/decisions/0389)."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from core.lib.datetimes import parse_datetime
from core.workspaces.api import authentication
from core.workspaces.models import ApiKey, Workspace
from core.workspaces.recipients.caps import MAX_COUNT, Cap, Exceeding, Per
from core.workspaces.recipients.rules import RecipientRules, read_rules
from core.workspaces.services import change_rules
from emails.models import CapWindow, Email, Recipient
from emails.recipient_caps import delete_ended_windows
from emails.sending.outcomes import SendResult, record_results
from suppressions.services import suppress_manually
from tests.conftest import IS_LONG_RUN, Account, Api, code_of, mail, make_domain, make_key
from tests.emails.builders import LATER, claim_entries, event_kinds, let_time_pass, send
from tests.entrances import ENTRANCES, TEMPLATED, TO, in_an_hour, make_template
from tests.sending_process import relay_to_mail_host, send_everything
from tests.threads import run_concurrently

pytestmark = pytest.mark.django_db(transaction=True)

DOMAIN = "alice.example"
HOUR = 3600
ROUNDS, THREADS = (20, 40) if IS_LONG_RUN else (1, 16)


@pytest.fixture
def account(alice: Account) -> Account:
    make_domain(alice.workspace, DOMAIN)
    make_template(alice.workspace, "welcome")
    return alice


@pytest.fixture
def secret(account: Account) -> str:
    return make_key(account.workspace)


@pytest.fixture
def key(secret: str) -> ApiKey:
    return ApiKey.objects.get()


@pytest.fixture
def api(secret: str) -> Api:
    return Api(secret)


@pytest.fixture
def host(settings):
    with relay_to_mail_host(settings) as host:
        yield host


def cap(owner: Workspace | ApiKey, *caps: Cap, **fields) -> None:
    """Set the caps of a workspace or a key, and forget what requests know of it."""
    change_rules(owner, rules=read_rules(caps=caps, **fields))
    authentication.cache.clear()


def pass_time(seconds: float) -> None:
    """Let all counted emails be older."""
    for window in CapWindow.objects.all():
        window.uses = {name: at - seconds for name, at in window.uses.items()}
        window.expires_at -= timedelta(seconds=seconds)
        window.save()


def statuses() -> list[tuple[str, str | None]]:
    return sorted(Recipient.objects.values_list("state", "reason"))


class TestRefusal:
    def test_an_email_too_many_is_refused_until_the_oldest_one_does_not_count(self, account, api):
        cap(account.workspace, Cap(2, HOUR))
        send(api), pass_time(600), send(api)
        refused = api.post("/emails/send", mail(to=f"Ada <{TO.upper()}>"))
        assert code_of(refused) == (429, "recipient_capped")
        problem = refused.json()
        assert [(one["field"], one["retryAt"]) for one in problem["recipients"]] == [("to[0]", problem["retryAt"])]
        retry_at = parse_datetime(problem["retryAt"])
        assert retry_at is not None
        left = (retry_at - datetime.now(UTC)).total_seconds()
        assert 2900 < left <= 3000
        assert abs(int(refused["Retry-After"]) - left) < 60
        send(api, to="grace@example.com")
        pass_time(3001)
        send(api)
        assert code_of(api.post("/emails/send", mail())) == (429, "recipient_capped")

    @pytest.mark.parametrize("field", ["to", "cc", "bcc"])
    def test_to_cc_and_bcc_count_alike(self, account, api, field):
        cap(account.workspace, Cap(1, HOUR))
        send(api, **{"to": "grace@example.com", field: [TO]})
        for other in ("to", "cc", "bcc"):
            refused = api.post("/emails/send", mail(**{"to": "heidi@example.com", other: [TO]}))
            assert [one["field"] for one in refused.json()["recipients"]] == [f"{other}[0]"]
        assert Email.objects.count() == 1

    def test_a_refused_email_counts_for_none_of_its_recipients(self, account, api):
        cap(account.workspace, Cap(1, HOUR))
        send(api)
        assert api.post("/emails/send", mail(to=[TO, "grace@example.com"])).status_code == 429
        send(api, to="grace@example.com")

    def test_what_is_not_accepted_does_not_count(self, account, api):
        cap(account.workspace, Cap(1, HOUR))
        suppress_manually(account.workspace, addresses=["grace@example.com"])
        assert api.post("/emails/send", mail(to=[TO, "grace@example.com"])).status_code == 422
        assert send(api, idempotencyKey="k") == send(api, idempotencyKey="k")
        assert code_of(api.post("/emails/send", mail())) == (429, "recipient_capped")

    def test_each_template_can_count_alone(self, account, api):
        cap(account.workspace, Cap(1, HOUR, Per.RECIPIENT_AND_TEMPLATE))
        templated = {"templateId": "welcome", "html": None, "subject": None}
        send(api), send(api, **templated)
        for fields in ({}, templated):
            assert code_of(api.post("/emails/send", mail(**fields))) == (429, "recipient_capped")

    def test_caps_of_key_and_workspace_both_apply(self, account, api, key):
        cap(account.workspace, Cap(2, HOUR))
        cap(key, Cap(1, HOUR))
        send(api)
        assert code_of(api.post("/emails/send", mail())) == (429, "recipient_capped")
        other = Api(make_key(account.workspace))
        send(other)
        assert code_of(other.post("/emails/send", mail())) == (429, "recipient_capped")

    def test_a_batch_rejects_those_that_exceed_it(self, account, api):
        cap(account.workspace, Cap(2, HOUR))
        body = {"from": f"hi@{DOMAIN}", "templateId": "welcome", "recipients": [{"to": TO}] * 3}
        answer = api.post("/emails/batch", body).json()
        assert (answer["queued"], [(one["index"], one["code"]) for one in answer["rejected"]]) == (
            2, [(2, "recipient_capped")],
        )  # fmt: skip
        assert parse_datetime(answer["rejected"][0]["retryAt"])
        refused = api.post("/emails/batch", body)
        assert code_of(refused) == (429, "recipient_capped")
        assert len(refused.json()["recipients"]) == 3

    @pytest.mark.parametrize("name", [name for name in ENTRANCES if name != "dry run"])
    def test_every_entrance_counts(self, account, secret, name):
        cap(account.workspace, Cap(1, HOUR))
        template = "welcome" if name in TEMPLATED else None
        assert ENTRANCES[name](secret, DOMAIN, template, TO).status_code in {200, 202}
        assert ENTRANCES[name](secret, DOMAIN, template, TO).status_code in {422, 429}
        assert Email.objects.count() == 1

    def test_a_copy_counts(self, account, api):
        cap(account.workspace, Cap(1, HOUR))
        email_id = send(api)
        assert code_of(api.post(f"/emails/{email_id}/resend")) == (429, "recipient_capped")


class TestDrop:
    DROP = Cap(1, HOUR, exceeding=Exceeding.DROP)

    def test_an_email_too_many_is_accepted_and_cancelled(self, account, api, host):
        cap(account.workspace, self.DROP)
        send(api)
        dropped = send(api)
        # Also once there is room again.
        pass_time(HOUR + 1)
        send_everything()
        assert host.recipients == [TO]
        shown = api.get(f"/emails/{dropped}").json()
        assert (shown["status"], event_kinds(dropped)) == ("cancelled", ["queued", "cancelled"])
        (event,) = [
            one for one in api.get(f"/emails/{dropped}/events").json()["data"] if one["eventType"] == "cancelled"
        ]
        assert event["payload"]["reason"] == "recipient_capped"

    def test_the_other_recipients_get_it(self, account, api, host):
        cap(account.workspace, self.DROP)
        send(api)
        send(api, to=[TO, "grace@example.com"])
        send_everything()
        assert sorted(host.recipients) == [TO, "grace@example.com"]
        assert statuses() == [("cancelled", "recipient_capped"), ("sent", None), ("sent", None)]


class TestClaim:
    @pytest.mark.parametrize("owner", ["workspace", "key"])
    @pytest.mark.parametrize(("exceeding", "state"), [(Exceeding.REFUSE, "failed"), (Exceeding.DROP, "cancelled")])
    def test_schedules_from_before_the_cap_obey(self, account, api, key, host, exceeding, state, owner):
        for _ in range(3):
            send(api, scheduledFor=in_an_hour())
        cap(account.workspace if owner == "workspace" else key, Cap(2, HOUR, exceeding=exceeding))
        send_everything()
        assert host.recipients == [TO, TO]
        assert statuses() == [(state, "recipient_capped"), ("sent", None), ("sent", None)]

    def test_an_email_is_counted_once_in_the_time_of_the_cap(self, account, api, host):
        cap(account.workspace, Cap(2, HOUR))
        send(api), send(api)
        send_everything()
        assert host.recipients == [TO, TO]

    def test_a_retry_is_not_counted(self, account, api, host):
        cap(account.workspace, Cap(1, HOUR))
        send(api)
        record_results([SendResult(claim, LATER) for claim in claim_entries()])
        pass_time(HOUR + 1)
        send(api)
        let_time_pass()
        send_everything()
        assert host.recipients == [TO, TO]

    def test_captured_recipients_do_not_count(self, account, api, host):
        cap(account.workspace, Cap(1, HOUR), allow=["@example.org"], otherwise="capture")
        for _ in range(3):
            send(api)
        send_everything()
        assert {state for state, _ in statuses()} == {"delivered"}
        assert not CapWindow.objects.exists()


@pytest.mark.parametrize("exceeding", Exceeding)
def test_parallel_requests_are_counted_exactly(account, secret, host, settings, exceeding):
    count = 5
    cap(account.workspace, Cap(count, HOUR, exceeding=exceeding))

    def request(_) -> int:
        # A busy machine may give no connection to the database in time; clients repeat such a request.
        body = mail(idempotencyKey=str(uuid4()))
        while (status := Api(secret).post("/emails/send", body).status_code) == 503:
            pass
        return status

    codes = [code for _ in range(ROUNDS) for code in run_concurrently(request, range(THREADS))]
    while Recipient.objects.filter(state="queued").exists():
        send_everything()
    assert len(host.recipients) == count
    if exceeding is Exceeding.REFUSE:
        assert (codes.count(202), codes.count(429)) == (count, ROUNDS * THREADS - count)
    else:
        assert codes.count(202) == ROUNDS * THREADS
        assert Recipient.objects.filter(state="cancelled").count() == ROUNDS * THREADS - count


def test_windows_are_deleted_when_their_time_is_over(account, api):
    cap(account.workspace, Cap(1, HOUR))
    send(api), pass_time(1800), send(api, to="grace@example.com")
    list(delete_ended_windows())
    assert CapWindow.objects.count() == 2
    pass_time(1801)
    list(delete_ended_windows())
    assert CapWindow.objects.count() == 1
    assert TO not in str([*CapWindow.objects.values()])


def test_without_caps_nothing_is_counted(account, api):
    change_rules(account.workspace, rules=read_rules(allow=["@example.com"]))
    authentication.cache.clear()
    with CaptureQueriesContext(connection) as queries:
        send(api)
    assert not [query for query in queries if "capwindow" in query["sql"]]


def test_stored_caps_are_those_that_were_read():
    given = read_rules(caps=[Cap(MAX_COUNT, 1, Per.RECIPIENT_AND_TEMPLATE, Exceeding.DROP)])
    assert RecipientRules.from_json(given.to_json()) == given
