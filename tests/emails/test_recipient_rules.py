"""Recipient rules: nobody but the recipients that workspace and key allow gets an email (docs/decisions/0388)."""

from email.utils import parseaddr

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from core.api.errors import InvalidFields
from core.delivery.recipients import RecipientSetting, read_recipients
from core.workspaces.api import authentication
from core.workspaces.key_limits import read_limits
from core.workspaces.models import ApiKey, Usage, Workspace
from core.workspaces.quota import read_quota
from core.workspaces.recipients.rules import AppliedRules, Otherwise, RecipientRules, Treatment, read_rules
from core.workspaces.services import change_rules
from emails.models import Email, QueueEntry, Recipient
from emails.sending.emails_work import EmailQueueWork
from emails.sending.outcomes import SendResult, record_results
from emails.sending.transports import configured_transport
from emails.upkeep.reconcile import count_slice_differences, find_differences
from interfaces.inbound.inbox.models import CaughtMail
from suppressions.models import Suppression
from tests.conftest import IS_LONG_RUN, Account, Api, code_of, mail, make_account, make_domain, make_key
from tests.emails.builders import LATER, claim_entries, event_kinds, send
from tests.emails.spellings import ALLOWED, SpelledEmail, is_allowed, spelled_emails
from tests.entrances import ENTRANCES, TEMPLATED, TO, in_an_hour, make_template
from tests.interfaces.compat.conftest import Dialect
from tests.rows import each
from tests.sending_process import relay_to_mail_host, send_everything

# The inbox is written by another thread.
pytestmark = pytest.mark.django_db(transaction=True)

DOMAIN = "alice.example"
QA = "qa@test-team.example"
OTHER = "eve@example.net"
REFUSE, CAPTURE, REDIRECT = (one.wire_name for one in (Otherwise.REFUSE, Otherwise.CAPTURE, Otherwise.REDIRECT))
EMAILS = 10_000 if IS_LONG_RUN else 60
OWNERS = ["workspace", "key", "installation"]


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


def rules(*allow: str, otherwise: str = REFUSE) -> RecipientRules:
    return read_rules(allow=allow, otherwise=otherwise, redirect_to=QA if otherwise == REDIRECT else None)


def limit(owner: Workspace | ApiKey, *allow: str, otherwise: str = REFUSE) -> None:
    """Set the rules of a workspace or a key, and forget what requests know of it."""
    change_rules(owner, rules=rules(*allow, otherwise=otherwise))
    authentication.cache.clear()


def limit_by(owner: str, account: Account, key: ApiKey, settings, *allow: str, otherwise: str = REFUSE) -> None:
    """Set the rules of an owner: `installation` for those of a file."""
    if owner == "installation":
        settings.RECIPIENTS = RecipientSetting(rules=rules(*allow, otherwise=otherwise))
    else:
        limit(account.workspace if owner == "workspace" else key, *allow, otherwise=otherwise)


def captured() -> list[str]:
    return sorted(CaughtMail.objects.filter(is_captured=True).values_list("recipient", flat=True))


def differences(account: Account) -> list[str]:
    """Return the wrong counters of emails; those of the queue are, because send_everything makes entries due."""
    return [one.key for one in find_differences(account.workspace.id) if not one.key.startswith("recipients.")]


def reasons() -> dict[str, tuple[str, str | None]]:
    return {one.address: (one.state, one.reason) for one in Recipient.objects.all()}


class TestAllowed:
    @each(
        ("entry", "allowed", "others"),
        [
            ("Ada@Example.COM", ["ada@example.com", "ADA@example.com"], ["ada+x@example.com", "eve@example.com"]),
            ("@Example.com", ["eve@example.com"], ["eve@a.example.com", "eve@xexample.com", "example.com@a.net"]),
            ("@*.example.com", ["eve@a.example.com", "eve@a.b.example.com"], ["eve@example.com", "e@aexample.com"]),
            ("@münchen.example", ["eve@xn--mnchen-3ya.example"], ["eve@munchen.example"]),
            ("grüße@example.com", ["GRÜSSE@example.com", "gru\u0308ße@example.com"], ["grusse@example.com"]),
        ],
    )
    def test_entries_are_compared_as_suppressions_are(self, entry, allowed, others):
        given = read_rules(allow=[entry])
        assert [given.permits(address) for address in allowed] == [True] * len(allowed)
        assert [given.permits(address) for address in others] == [False] * len(others)

    def test_an_empty_list_allows_nobody(self):
        assert not read_rules(allow=[]).permits("ada@example.com")

    @each(
        ("fields", "codes"),
        [
            ({"allow": ["nobody"]}, {"recipientRules.allow[0]": "invalid_entry"}),
            ({"allow": ["@"]}, {"recipientRules.allow[0]": "invalid_entry"}),
            ({"allow": ["@*"]}, {"recipientRules.allow[0]": "invalid_entry"}),
            ({"allow": ["*@example.com"] * 201}, {"recipientRules.allow": "max_length"}),
            ({"allow": [], "otherwise": "redirect"}, {"recipientRules.redirectTo": "required"}),
            ({"allow": [], "redirect_to": QA}, {"recipientRules.redirectTo": "invalid"}),
            (
                {"allow": [], "otherwise": "redirect", "redirect_to": "qa"},
                {"recipientRules.redirectTo": "invalid_email"},
            ),
            ({}, {"recipientRules.allow": "required"}),
        ],
    )
    def test_invalid_rules_are_refused(self, fields, codes):
        with pytest.raises(InvalidFields) as refused:
            read_rules(**fields)
        assert {error["field"]: error["code"] for error in refused.value.members["errors"]} == codes

    def test_stored_rules_are_those_that_were_read(self):
        given = rules("Ada@Example.com", "@münchen.example", otherwise=REDIRECT)
        assert RecipientRules.from_json(given.to_json()) == given


class TestStricter:
    @each(
        ("workspace", "key", "expected"),
        [
            (None, None, None),
            (rules("@a.example"), None, Otherwise.REFUSE),
            (None, rules("@a.example", otherwise=CAPTURE), Otherwise.CAPTURE),
            (rules("@a.example", otherwise=CAPTURE), rules("@a.example"), Otherwise.REFUSE),
            (rules("@a.example"), rules("@a.example", otherwise=REDIRECT), Otherwise.REFUSE),
            (rules("@a.example", otherwise=REDIRECT), rules("@a.example", otherwise=CAPTURE), Otherwise.CAPTURE),
            (rules("@example.net"), rules("@a.example", otherwise=CAPTURE), Otherwise.CAPTURE),
            (rules("@example.net", otherwise=CAPTURE), rules("@example.net"), None),
        ],
    )
    def test_the_stricter_of_both_wins(self, workspace, key, expected):
        treatment = AppliedRules(workspace, key).treat(OTHER)
        assert (treatment and treatment.otherwise) == expected

    def test_a_key_redirects_to_nobody_whom_the_workspace_does_not_allow(self):
        by_key = rules("@example.org", otherwise=REDIRECT)
        outside = rules("@example.net", otherwise=CAPTURE)
        assert AppliedRules(outside, by_key).treat(OTHER) == Treatment(Otherwise.CAPTURE)
        inside = rules("@example.net", "@test-team.example")
        assert AppliedRules(inside, by_key).treat(OTHER) == Treatment(Otherwise.REDIRECT, QA)

    @each(
        ("workspace", "key", "installation", "expected"),
        [
            (None, None, rules("@a.example"), Treatment(Otherwise.REFUSE)),
            (None, None, rules("@example.net"), None),
            (rules("@a.example"), None, rules("@example.net", otherwise=CAPTURE), Treatment(Otherwise.REFUSE)),
            (rules("@a.example", otherwise=CAPTURE), None, rules("@a.example"), Treatment(Otherwise.REFUSE)),
            (None, rules("@a.example", otherwise=REDIRECT), rules("@example.net"), Treatment(Otherwise.REFUSE)),
            (None, rules("@a.example", otherwise=REDIRECT), rules(QA), Treatment(Otherwise.REFUSE)),
            (None, rules("@a.example", otherwise=REDIRECT), rules(QA, OTHER), Treatment(Otherwise.REDIRECT, QA)),
        ],
    )
    def test_those_of_the_installation_are_above_both(self, workspace, key, installation, expected):
        assert AppliedRules(workspace, key, installation).treat(OTHER) == expected

    def test_of_several_redirects_the_one_of_the_highest_rules_counts(self):
        def redirecting(target: str) -> RecipientRules:
            return read_rules(allow=["@a.example"], otherwise=REDIRECT, redirect_to=target)

        key, workspace, installation = (redirecting(f"{name}@qa.example") for name in ("key", "workspace", "all"))
        for applied, target in (
            (AppliedRules(None, key), "key"),
            (AppliedRules(workspace, key), "workspace"),
            (AppliedRules(workspace, key, installation), "all"),
        ):
            assert applied.treat(OTHER) == Treatment(Otherwise.REDIRECT, f"{target}@qa.example")


ACCEPTING = [name for name in ENTRANCES if name != "dry run"]
# Those that accept suppressed recipients, too, which fail at the claim.
ACCEPTED_THERE = {"resend", "resend batch", "postmark bulk", "sendgrid"}


def call(name: str, secret: str, to: str):
    return ENTRANCES[name](secret, DOMAIN, "welcome" if name in TEMPLATED else None, to)


@pytest.mark.parametrize("owner", OWNERS)
@pytest.mark.parametrize("name", list(ENTRANCES))
def test_every_entrance_refuses_a_recipient(account, key, secret, host, settings, name, owner):
    limit_by(owner, account, key, settings, "@example.com")
    response = call(name, secret, OTHER)
    if name in ACCEPTED_THERE:
        assert response.status_code in {200, 202}, response.content
        send_everything()
        assert reasons() == {OTHER: ("failed", "recipient_not_allowed")}
    else:
        assert response.status_code in {403, 422}, response.content
        assert not Email.objects.exists()
    assert (host.connections, captured(), Suppression.objects.count()) == (0, [], 0)
    assert call(name, secret, TO).status_code in {200, 202}


@pytest.mark.parametrize("owner", OWNERS)
@pytest.mark.parametrize("otherwise", [CAPTURE, REDIRECT])
@pytest.mark.parametrize("name", ACCEPTING)
def test_every_entrance_diverts_a_recipient(account, key, secret, host, settings, name, otherwise, owner):
    limit_by(owner, account, key, settings, "@example.com", otherwise=otherwise)
    assert call(name, secret, OTHER).status_code in {200, 202}
    assert send_everything() == 1
    assert host.recipients == ([QA] if otherwise == REDIRECT else [])
    assert captured() == ([OTHER] if otherwise == CAPTURE else [])
    assert Email.objects.get().is_diverted
    assert not Usage.objects.filter(used__gt=0).exists()
    assert differences(account) == []
    host.recipients.clear()
    assert call(name, secret, TO).status_code in {200, 202}
    send_everything()
    assert host.recipients == [TO]


class TestRefusal:
    def test_the_error_names_all_of_them_with_their_fields(self, account, api):
        limit(account.workspace, "@example.com")
        body = mail(to=[TO, f"Eve <{OTHER}>"], cc=[OTHER.upper()], bcc=["bob@example.org"])
        refused = api.post("/emails/send", body)
        assert code_of(refused) == (403, "recipient_not_allowed")
        assert [(one["field"], parseaddr(one["email"])[1].lower()) for one in refused.json()["recipients"]] == [
            ("to[1]", OTHER), ("cc[0]", OTHER), ("bcc[0]", "bob@example.org"),
        ]  # fmt: skip

    def test_a_batch_rejects_them_and_sends_to_the_others(self, account, api, host):
        limit(account.workspace, "@example.com")
        Suppression.objects.create(workspace=account.workspace, email=TO, address_key=TO, reason="manual")
        recipients = [{"to": OTHER}, {"to": TO}, {"to": "grace@example.com"}]
        body = {"from": f"hi@{DOMAIN}", "templateId": "welcome", "recipients": recipients}
        answer = api.post("/emails/batch", body).json()
        assert [(one["index"], one["code"]) for one in answer["rejected"]] == [
            (0, "recipient_not_allowed"), (1, "recipient_suppressed"),
        ]  # fmt: skip
        assert answer["queued"] == 1
        send_everything()
        assert host.recipients == ["grace@example.com"]
        body["recipients"] = recipients[:1]
        assert code_of(api.post("/emails/batch", body)) == (403, "recipient_not_allowed")

    def test_a_batch_of_both_kinds_counts_each_as_it_is(self, account, api, host):
        limit(account.workspace, "@example.com", otherwise=CAPTURE)
        body = {"from": f"hi@{DOMAIN}", "templateId": "welcome", "recipients": [{"to": OTHER}, {"to": TO}]}
        assert api.post("/emails/batch", body).json()["queued"] == 2
        send_everything()
        assert (host.recipients, captured()) == ([TO], [OTHER])
        assert read_quota(account.workspace).used == 1
        assert differences(account) == []

    def test_postmark_lists_them_as_inactive(self, account, secret):
        limit(account.workspace, "@example.com")
        postmark = Dialect("postmark", secret)
        body = {"From": f"hi@{DOMAIN}", "To": f"{TO}, {OTHER}", "Subject": "Hi", "TextBody": "Hi"}
        accepted = postmark.post("/email", body).json()
        assert accepted["ErrorCode"] == 0
        assert OTHER in accepted["Message"]
        refused = postmark.post("/email", {**body, "To": OTHER})
        assert (refused.status_code, refused.json()["ErrorCode"]) == (422, 406)

    def test_a_copy_is_judged_by_the_present_rules(self, account, api, host):
        email_id = send(api, to=OTHER)
        send_everything()
        limit(account.workspace, "@example.com")
        assert code_of(api.post(f"/emails/{email_id}/resend")) == (403, "recipient_not_allowed")
        limit(account.workspace, "@example.com", otherwise=CAPTURE)
        assert api.post(f"/emails/{email_id}/resend").status_code == 202
        send_everything()
        assert (host.recipients, captured()) == ([OTHER], [OTHER])


class TestClaim:
    """What was accepted before the rules obeys them."""

    @pytest.fixture
    def queue(self, api, key) -> list[str]:
        """Return the recipients of a schedule, a retry and an email that is ready; the last to an allowed one."""
        send(api, to="scheduled@example.net", scheduledFor=in_an_hour())
        send(api, to="retried@example.net", cc=["also@example.net"])
        record_results([SendResult(claim, LATER) for claim in claim_entries()])
        send(api, to="ready@example.net")
        send(api, to=TO)
        return sorted(set(Recipient.objects.values_list("address", flat=True)) - {TO})

    @pytest.mark.parametrize("owner", OWNERS)
    @pytest.mark.parametrize("otherwise", [REFUSE, CAPTURE, REDIRECT])
    def test_a_later_rule_applies(self, account, key, queue, host, settings, otherwise, owner):
        limit_by(owner, account, key, settings, "@example.com", otherwise=otherwise)
        for _ in range(3):
            send_everything()
        assert not QueueEntry.objects.exists()
        assert {*host.recipients} == ({TO, QA} if otherwise == REDIRECT else {TO})
        assert captured() == (queue if otherwise == CAPTURE else [])
        if otherwise == REFUSE:
            states = reasons()
            assert {states[address] for address in queue} == {("failed", "recipient_not_allowed")}
        assert not Suppression.objects.exists()
        assert read_quota(account.workspace).used == (4 if otherwise == REFUSE else 1)
        assert differences(account) == []
        assert count_slice_differences(account.workspace.id) == 0

    def test_the_rules_of_another_key_do_not_matter(self, account, api, key, host):
        send(api, to=OTHER)
        other = make_key(account.workspace)
        limit(ApiKey.objects.exclude(id=key.id).get(), "@example.com")
        send_everything()
        assert host.recipients == [OTHER]
        assert code_of(Api(other).post("/emails/send", mail(to=OTHER))) == (403, "recipient_not_allowed")

    def test_a_revoked_key_still_limits_what_it_accepted(self, api, key, host):
        send(api, to=OTHER)
        limit(key, "@example.com", otherwise=CAPTURE)
        ApiKey.objects.update(revoked_at="2026-01-01T00:00:00Z")
        send_everything()
        assert (host.recipients, captured()) == ([], [OTHER])

    def test_a_recipient_captured_before_is_not_sent_to_without_rules(self, account, api, host):
        limit(account.workspace, "@example.com", otherwise=REDIRECT)
        send(api, to=OTHER)
        change_rules(account.workspace, rules=None)
        send_everything()
        assert (host.recipients, captured()) == ([], [OTHER])

    def test_a_refused_email_says_why(self, account, api, host):
        email_id = send(api, to=OTHER)
        limit(account.workspace, "@example.com")
        send_everything()
        assert event_kinds(email_id) == ["queued", "failed"]
        shown = api.get(f"/emails/{email_id}").json()
        assert (shown["status"], shown["errorMessage"]) == ("failed", "The recipient rules do not allow the address.")


class TestMixed:
    """Emails of which some recipients are diverted."""

    @pytest.mark.parametrize("otherwise", [CAPTURE, REDIRECT])
    @pytest.mark.parametrize("when", ["accepted", "claimed"])
    def test_the_others_get_their_message(self, account, api, host, settings, otherwise, when):
        settings.QUOTA_UNIT = "recipient"
        if when == "accepted":
            limit(account.workspace, "@example.com", otherwise=otherwise)
        send(api, to=[TO], cc=[OTHER], bcc=["eve@example.org"])
        if when == "claimed":
            limit(account.workspace, "@example.com", otherwise=otherwise)
        send_everything()
        assert sorted(host.recipients) == ([TO, QA, QA] if otherwise == REDIRECT else [TO])
        assert captured() == ([OTHER, "eve@example.org"] if otherwise == CAPTURE else [])
        assert Email.objects.get().is_diverted is False
        assert read_quota(account.workspace).used == 1
        assert differences(account) == []

    def test_a_cancelled_schedule_returns_what_it_used(self, account, api, settings):
        settings.QUOTA_UNIT = "recipient"
        limit(account.workspace, "@example.com", otherwise=CAPTURE)
        send(api, to=[TO])
        email_id = send(api, to=[TO], cc=[OTHER], scheduledFor=in_an_hour())
        assert read_quota(account.workspace).used == 2
        assert api.delete(f"/emails/{email_id}").status_code == 200
        assert read_quota(account.workspace).used == 1


@pytest.mark.parametrize("setting", ["captured", f"redirect:{TO}"])
@pytest.mark.parametrize("otherwise", [REFUSE, CAPTURE, REDIRECT])
def test_the_switch_of_the_installation_is_above_all(account, api, host, settings, setting, otherwise):
    send(api, to=OTHER)
    limit(account.workspace, TO, otherwise=otherwise)
    settings.RECIPIENTS = read_recipients(setting)
    send(api, to=TO)
    send_everything()
    refused = {OTHER} if otherwise == REFUSE else set()
    assert {one.address for one in Recipient.objects.filter(state="failed")} == refused
    assert {*host.recipients} <= {TO}
    assert captured() == (sorted({TO, OTHER} - refused) if setting == "captured" else [])


def test_test_emails_and_simulated_recipients_stay_with_the_simulator(account, api, host):
    limit(account.workspace, "@example.com")
    bounced = send(api, to="bounced@simulator.test")
    test = Api(make_key(account.workspace, "sending_access", limits=read_limits(is_test=True)))
    send(test, to=OTHER)
    send_everything()
    assert (host.connections, captured()) == (0, [])
    assert Email.objects.get(id=bounced).status == "bounced"


def test_who_has_no_rules_pays_no_statement(account, api, host):
    counts = {}
    for allow in ((), ("@example.com", "@simulator.test")):
        change_rules(account.workspace, rules=rules(*allow) if allow else None)
        authentication.cache.clear()
        send(api)
        with CaptureQueriesContext(connection) as accepting:
            send(api)
        work = EmailQueueWork(configured_transport(), sessions=50)
        with CaptureQueriesContext(connection) as claiming:
            assert len(work.claim(50).jobs) == 2
        counts[allow] = len(accepting), len(claiming)
    assert len({*counts.values()}) == 1


def _native(secret: str, email: SpelledEmail):
    body = mail(**{"from": f"hi@{DOMAIN}", "to": email.to, "cc": email.cc, "bcc": email.bcc})
    return Api(secret).post("/emails/send", body)


def _postmark(secret: str, email: SpelledEmail):
    lists = {name.title(): ", ".join(getattr(email, name)) for name in ("to", "cc", "bcc") if getattr(email, name)}
    body = {"From": f"hi@{DOMAIN}", "Subject": "Hi", "TextBody": "Hi", **lists}
    return Dialect("postmark", secret).post("/email", body)


def _resend(secret: str, email: SpelledEmail):
    body = {"from": f"hi@{DOMAIN}", "to": email.to, "cc": email.cc, "bcc": email.bcc, "subject": "Hi", "text": "Hi"}
    return Dialect("resend", secret).post("/emails", body)


def _sendgrid(secret: str, email: SpelledEmail):
    lists = {
        name: [{"email": text[text.rfind("<") + 1 :].removesuffix(">")} for text in getattr(email, name)]
        for name in ("to", "cc", "bcc")
        if getattr(email, name)
    }
    body = {
        "personalizations": [lists],
        "from": {"email": f"hi@{DOMAIN}"},
        "subject": "Hi",
        "content": [{"type": "text/plain", "value": "Hi"}],
    }
    return Dialect("sendgrid", secret).post("/v3/mail/send", body)


SPELLED = {"send": _native, "postmark": _postmark, "resend": _resend, "sendgrid": _sendgrid}


@pytest.mark.parametrize("otherwise", [REFUSE, CAPTURE, REDIRECT])
@pytest.mark.parametrize("name", SPELLED)
def test_no_spelling_of_a_recipient_escapes_the_rules(settings, host, name, otherwise):
    workspace = make_account("alice").workspace
    make_domain(workspace, DOMAIN)
    secret = make_key(workspace)
    limit(workspace, *ALLOWED, otherwise=otherwise)
    refused = accepted = 0
    share = EMAILS // (3 * len(SPELLED))
    for email in spelled_emails(share, seed=share):
        response = SPELLED[name](secret, email)
        assert response.status_code in {200, 202, 403, 422}, response.content
        accepted += response.status_code in {200, 202}
        refused += response.status_code not in {200, 202} and email.has_others
        if accepted % 40 == 39:
            _send_all()
    _send_all()
    others = [address for address in Recipient.objects.values_list("address", flat=True) if not is_allowed(address)]
    assert accepted > 0
    assert not [address for address in host.recipients if address != QA and not is_allowed(address)]
    assert not [address for address in captured() if is_allowed(address)]
    if otherwise == REFUSE:
        assert refused or others
        assert not Recipient.objects.filter(address__in=others).exclude(reason="recipient_not_allowed").exists()
    else:
        diversions = {*Recipient.objects.filter(address__in=others).values_list("diversion", flat=True)}
        assert diversions == {"captured" if otherwise == CAPTURE else "redirected"}
    assert not Suppression.objects.exists()


def _send_all() -> None:
    while QueueEntry.objects.exists():
        send_everything()
