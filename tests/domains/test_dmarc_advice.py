"""Advice on the DMARC policy: each requirement on both sides of its threshold, and the record to publish."""

from datetime import date, timedelta

import pytest

from domains.models import Domain
from domains.record_checks.results import RecordCheck, RecordStatus, VerificationResult, to_json
from domains.reports.advice import advise_policy
from domains.reports.sources import name_source
from tests.domains.report_builders import OTHER_IP, THIRD_IP, add_report, broken, count_sent, foreign, row
from tests.rows import each

pytestmark = pytest.mark.django_db

TODAY = date(2026, 11, 30)
REPORTERS = ("google.com", "Yahoo", "mx.acme.example")
KEPT = "v=DMARC1; p=none; rua=mailto:dmarc@alice.example; adkim=s"


@pytest.fixture(autouse=True)
def _own_servers(settings):
    settings.SPF_MECHANISMS = "ip4:198.51.100.0/24"


@pytest.fixture
def domain(api, alice):
    return alice.workspace.domains.get(name="alice.example")


def publish(domain: Domain, text: str | None, *, inherited: bool = False, status: RecordStatus = RecordStatus.VALID):
    """Store a check that found a DMARC record."""
    check = RecordCheck(status, found=text, value=text if status is RecordStatus.VALID and not inherited else None)
    missing = RecordCheck(RecordStatus.MISSING)
    result = VerificationResult(keys={}, spf=missing, dmarc=check, return_path=missing, mail=missing)
    domain.findings = to_json(result)
    domain.last_checked_at = domain.created_at


def report(domain, *, days=14, reporters=REPORTERS, policy="none", last=TODAY, rows=None):
    """Report about each of the last days; rows of the last one may be others."""
    for past in range(days):
        for reporter in reporters:
            day = last - timedelta(days=past)
            add_report(
                domain, *(rows if rows and not past else [row(domain, 100)]), day=day, reporter=reporter, policy=policy
            )


def unmet(domain):
    return [one.code for one in advise_policy(domain, today=TODAY).requirements if not one.is_met]


def test_a_domain_without_a_policy_gets_the_record_that_asks_for_reports(domain):
    for status, text in ((RecordStatus.MISSING, None), (RecordStatus.INVALID, "v=DMARC1; p=nothing")):
        publish(domain, text, status=status)
        advice = advise_policy(domain, today=TODAY)
        assert (advice.policy, advice.recommended) == ("", "none")
        assert advice.record.fqdn == "_dmarc.alice.example"
        assert advice.record.value.startswith("v=DMARC1; p=none")


def test_a_policy_of_none_may_become_quarantine_after_two_weeks(domain):
    publish(domain, KEPT)
    report(domain)
    advice = advise_policy(domain, today=TODAY)
    assert (advice.policy, advice.recommended, unmet(domain)) == ("none", "quarantine", [])
    assert advice.record.value == "v=DMARC1; p=quarantine; rua=mailto:dmarc@alice.example; adkim=s;"
    assert advice.summary == "You may change the policy from p=none to p=quarantine."


def test_quarantine_may_become_reject_two_weeks_later_and_reject_stays(domain):
    publish(domain, KEPT.replace("none", "quarantine"))
    report(domain, days=13, policy="quarantine")
    report(domain, last=TODAY - timedelta(days=13))
    assert unmet(domain) == ["lasting"]
    report(domain, days=1, policy="quarantine", last=TODAY + timedelta(days=1))
    # The report about tomorrow does not count today.
    assert unmet(domain) == ["lasting"]
    assert advise_policy(domain, today=TODAY + timedelta(days=1)).recommended == "reject"
    publish(domain, KEPT.replace("none", "reject"))
    advice = advise_policy(domain, today=TODAY)
    assert (advice.recommended, advice.record, advice.requirements) == ("reject", None, ())


@each(("options", "missing"), [
    ({"last": TODAY - timedelta(days=3)}, []), ({"last": TODAY - timedelta(days=4)}, ["recent"]),
    ({"days": 14}, []), ({"days": 13}, ["lasting"]),
    ({"reporters": REPORTERS}, []), ({"reporters": REPORTERS[:2]}, ["covered"]),
])  # fmt: skip
def test_reports_must_be_recent_last_two_weeks_and_come_from_three_organizations(domain, options, missing):
    publish(domain, KEPT)
    report(domain, **options)
    assert unmet(domain) == missing


@each(("covered", "missing"), [(80, []), (79, ["covered"])])
def test_organizations_that_got_most_of_the_email_are_enough(domain, covered, missing):
    publish(domain, KEPT)
    report(domain, reporters=["google.com"])
    count_sent(domain, covered, day=TODAY)
    count_sent(domain, 100 - covered, day=TODAY, organization="silent.example")
    assert unmet(domain) == missing


@each(("failed", "missing"), [(42, []), (43, ["aligned"])])
def test_nearly_all_own_email_must_pass(domain, failed, missing):
    publish(domain, KEPT)
    report(domain, reporters=REPORTERS[:1], rows=[row(domain, 100), broken(domain, failed)])
    report(domain, reporters=REPORTERS[1:])
    # 4,200 messages passed: 42 of 4,242 are not more than 1 %.
    assert unmet(domain) == missing


@each(("messages", "own", "missing"), [
    (1, 100, []), (2, 100, ["known"]), (100, 100_000, []), (101, 100_000, ["known"]),
])  # fmt: skip
def test_no_unknown_source_may_have_more_than_a_hundred_messages_or_one_percent(domain, messages, own, missing):
    publish(domain, KEPT)
    for past in range(14):
        for reporter in REPORTERS:
            day = TODAY - timedelta(days=past)
            add_report(domain, day=day, reporter=reporter)
    add_report(domain, row(domain, own), foreign(domain, messages), foreign(domain, 1, ip=THIRD_IP), day=TODAY)
    for reporter in REPORTERS[1:]:
        add_report(domain, row(domain, 1), day=TODAY, reporter=reporter)
    assert unmet(domain) == missing


def test_a_named_source_no_longer_counts_but_its_failing_email_is_noted(domain):
    publish(domain, KEPT)
    report(domain, rows=[row(domain, 100), foreign(domain, 1200)])
    advice = advise_policy(domain, today=TODAY)
    assert f"such as {OTHER_IP} (3,600)" in advice.requirements[-1].text
    name_source(domain, ip=OTHER_IP, label="Shop")
    advice = advise_policy(domain, today=TODAY)
    assert advice.recommended == "quarantine"
    assert advice.notes == ["3,600 messages of Shop did not pass DMARC: set up DKIM for the domain there first."]


@each(("text", "inherited", "policy"), [
    ("v=DMARC1; p=reject", False, "reject"), ("v=DMARC1; p=reject; t=y", False, "quarantine"),
    ("v=DMARC1; p=quarantine; t=y", False, "none"), ("v=DMARC1; P=Reject", False, "reject"),
    ("v=DMARC1; rua=mailto:a@b.example", False, "none"), ("v=DMARC1; p=reject; sp=none", True, "none"),
    ("v=DMARC1; p=reject; sp=none", False, "reject"), ("v=DMARC1; p=reject", True, "reject"),
])  # fmt: skip
def test_the_present_policy_is_that_of_the_last_check(domain, text, inherited, policy):
    publish(domain, text, inherited=inherited)
    assert advise_policy(domain, today=TODAY).policy == policy


def test_before_a_check_the_policy_is_that_of_the_last_report(domain):
    add_report(domain, day=TODAY - timedelta(days=1), policy="quarantine")
    assert advise_policy(domain, today=TODAY).policy == "quarantine"
    add_report(domain, day=TODAY, policy_published={"domain": "example", "p": "reject", "sp": "none"})
    assert advise_policy(domain, today=TODAY).policy == "none"


def test_reports_that_are_not_counted_change_nothing(domain):
    publish(domain, KEPT)
    add_report(domain, day=TODAY, policy="reject", state="foreign")
    advice = advise_policy(domain, today=TODAY)
    assert (advice.recommended, advice.requirements) == ("none", ())
    assert "no report about the domain has arrived in 90 days" in advice.summary
