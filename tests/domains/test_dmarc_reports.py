"""DMARC reports compared with the own counters: whose mail a row is, sums, sources, and the API."""

import random
from collections import Counter
from datetime import UTC, date, datetime, timedelta

import pytest

from core.workspaces.models import AuditEntry
from domains.models import DmarcDay, DmarcRow, DomainReport, KnownSource
from domains.reports.queue import save_report
from domains.reports.reading.results import DkimResult, ReadDmarcRow, ReadReport
from domains.reports.sources import MAX_KNOWN, name_source
from tests.conftest import Api, make_domain, make_key
from tests.domains.report_builders import (
    OTHER_IP,
    OUR_IP,
    THIRD_IP,
    add_report,
    add_tls_report,
    broken,
    count_sent,
    foreign,
    forwarded,
    midnight,
    row,
    signature,
    spf,
)
from tests.emails.builders import fold
from tests.rows import each

pytestmark = pytest.mark.django_db

DAY = date(2026, 11, 20)
RANGE = {"from": "2026-11-01", "to": "2026-11-30"}


@pytest.fixture(autouse=True)
def _own_servers(settings):
    settings.SPF_MECHANISMS = "include:_spf.example.com ip4:198.51.100.0/24 ip6:2001:db8::/48"
    settings.RETURN_PATH_DOMAIN = "bounce.example.net"


@pytest.fixture
def domain(api, alice):
    return alice.workspace.domains.get(name="alice.example")


def url(domain, path="dmarc"):
    return f"/domains/{domain.id}/{path}"


def whose(domain, values):
    report = add_report(domain, values, day=DAY)
    return report.dmarc_rows.get().whose


@each(("make", "values", "expected"), [
    (row, {}, "ours"),
    (row, {"ip": "2001:db8::7"}, "ours"),
    # The server is one of those that the name in SPF_MECHANISMS has: SPF of the return path says so.
    (row, {"ip": OTHER_IP, "spf_results": [spf("bounce.alice.example")]}, "ours"),
    (row, {"ip": OTHER_IP, "spf_results": [spf("Bounce.Example.net")]}, "ours"),
    (broken, {}, "ours_broken"),
    (broken, {"ip": OTHER_IP, "spf_results": [spf("bounce.alice.example")]}, "ours_broken"),
    (forwarded, {}, "forwarded"),
    (forwarded, {"spf_results": [spf("lists.example.org")]}, "forwarded"),
    (foreign, {}, "unknown"),
    (foreign, {"ip": None}, "unknown"),
    (foreign, {"spf_results": [spf("bounce.alice.example", "fail")]}, "unknown"),
])  # fmt: skip
def test_a_row_is_ours_by_a_signature_or_by_its_server(domain, make, values, expected):
    assert whose(domain, make(domain, **values)) == expected


@each(("change", "expected"), [
    ({"selector": "PR1"}, "forwarded"), ({"name": "ALICE.example"}, "forwarded"),
    # Another key, an invalid signature, another domain.
    ({"selector": "s1"}, "unknown"), ({"result": "fail"}, "unknown"), ({"name": "mail.alice.example"}, "unknown"),
])  # fmt: skip
def test_only_a_valid_signature_by_a_key_of_the_domain_is_a_proof(domain, change, expected):
    assert whose(domain, forwarded(domain, dkim_results=[signature(domain, **change)])) == expected


@each(("source", "values", "expected"), [
    ({"ip": OTHER_IP}, {}, "known"), ({"ip": THIRD_IP}, {}, "unknown"),
    ({"name": "esp.example.net"}, {"spf_results": [spf("bounce.esp.example.net")]}, "known"),
    ({"name": "esp.example.net"}, {"spf_results": [spf("ESP.example.net")]}, "known"),
    ({"name": "esp.example.net"}, {"spf_results": [spf("notesp.example.net")]}, "unknown"),
    ({"name": "esp.example.net"}, {"spf_results": [spf("esp.example.net", "softfail")]}, "unknown"),
    # What was sent from here stays ours.
    ({"ip": OTHER_IP}, {"dkim_results": [{**spf("alice.example"), "selector": "pr1"}]}, "forwarded"),
])  # fmt: skip
def test_a_named_source_is_known_before_and_after_its_rows(domain, source, values, expected):
    later = add_report(domain, foreign(domain, **values), day=DAY).dmarc_rows.get()
    name_source(domain, **source, label="Newsletter tool")
    later.refresh_from_db()
    assert later.whose == whose(domain, foreign(domain, **values)) == expected
    name_source(domain, **source, label="")
    later.refresh_from_db()
    assert later.whose == ("forwarded" if expected == "forwarded" else "unknown")


def test_a_row_about_another_domain_of_the_workspace_counts_for_that_one(api, bob, domain):
    """The policy of a domain covers those below it, whose reports come to its address."""
    below, foreign_one = (
        make_domain(domain.workspace, "mail.alice.example"),
        make_domain(bob.workspace, "x.alice.example"),
    )
    rows = [
        row(below, 3, header_from="Mail.Alice.example"),
        row(domain, 5),
        foreign(domain, 2, header_from="x.alice.example"),
    ]
    report = add_report(domain, *rows, day=DAY)
    sums = {one: api.get(url(one), RANGE).json()["totals"] for one in (domain, below)}
    assert [(one["ours"], one["unknown"]) for one in sums.values()] == [(5, 2), (3, 0)]
    assert not DmarcRow.objects.filter(domain=foreign_one).exists()
    assert api.get(url(domain, f"dmarc/reports/{report.id}")).json()["rowCount"] == 3


def test_a_report_is_classified_when_it_is_read(domain):
    begin = midnight(datetime.now(UTC).date() - timedelta(days=1))
    rows = tuple(
        ReadDmarcRow(
            ip, count, "none", "pass", "pass", domain.name, dkim_results=(DkimResult(domain.name, "pr1", "pass"),)
        )
        for ip, count in ((OUR_IP, 7), (OTHER_IP, 2))
    )
    read = ReadReport(
        "dmarc",
        "Enterprise Outlook",
        "dmarcreport@microsoft.com",
        "r1",
        begin,
        begin,
        (domain.name,),
        {"p": "none"},
        rows,
    )
    report = DomainReport.objects.create(domain=domain, kind="dmarc", source=b"", size=0)
    save_report(report, read)
    report.refresh_from_db()
    assert (report.state, report.organization) == ("read", "microsoft-365")
    assert sorted(report.dmarc_rows.values_list("count", "whose")) == [(2, "forwarded"), (7, "ours")]


def test_a_simulated_month_has_exact_sums(api, domain):
    """Three organizations report forwards, damaged messages and forgeries, too; a fourth sends no reports."""
    chance = random.Random(7)
    names = {"google.com": "google", "Yahoo": "yahoo", "mx.acme.example": "acme.example"}
    totals, organizations, days = Counter(), {}, {}
    name_source(domain, ip=THIRD_IP, label="Newsletter tool")
    for day in (date(2026, 11, 1) + timedelta(days=past) for past in range(30)):
        days[day.isoformat()] = Counter()
        for reporter, key in names.items():
            sent = chance.randrange(50, 500)
            damaged, passed_on, forged, known = (chance.randrange(5) for _ in range(4))
            count_sent(domain, sent, day=day, organization=key)
            rows = [
                row(domain, sent - damaged), broken(domain, damaged), forwarded(domain, passed_on),
                foreign(domain, forged), foreign(domain, known, ip=THIRD_IP),
            ]  # fmt: skip
            add_report(domain, *rows, day=day, reporter=reporter)
            counts = Counter(
                sent=sent, ours=sent - damaged, oursBroken=damaged, forwarded=passed_on, unknown=forged, known=known,
                reported=sent + passed_on, aligned=sent - damaged + passed_on, others=forged + known,
            )  # fmt: skip
            for sums in (totals, organizations.setdefault(key, Counter()), days[day.isoformat()]):
                sums.update(counts)
        count_sent(domain, 40, day=day, organization="silent.example")
        for sums in (totals, days[day.isoformat()]):
            sums["sent"] += 40
        if day.day % 7 == 0:
            fold()
    # The day before and the day after do not count.
    for day in (date(2026, 10, 31), date(2026, 12, 1)):
        count_sent(domain, 1000, day=day)
        add_report(domain, row(domain, 1000), day=day)

    body = api.get(url(domain), RANGE).json()
    assert (body["from"], body["to"]) == ("2026-11-01T00:00:00.000Z", "2026-12-01T00:00:00.000Z")
    assert body["totals"] == totals
    assert body["coverage"] == (totals["sent"] - 30 * 40) / totals["sent"]
    assert {one["id"]: {name: one[name] for name in totals} for one in body["organizations"]} == organizations
    assert {one["sources"] for one in body["organizations"]} == {2}
    assert {one.pop("date"): one for one in body["days"]} == days


def test_days_whose_rows_were_deleted_still_count(api, domain):
    add_report(domain, row(domain, 7), day=DAY)
    DmarcDay.objects.create(
        domain=domain, day=DAY, organization="google", whose="unknown", messages=5, aligned=1
    )  # fmt: skip
    totals = api.get(url(domain), RANGE).json()["totals"]
    assert (totals["ours"], totals["unknown"], totals["reported"], totals["aligned"]) == (7, 5, 7, 7)


@each(("sent", "rows", "summary"), [
    (9984, [(row, 9981, {}), (foreign, 20, {}), (foreign, 21, {"ip": THIRD_IP})],
     "Google received 9,984 of yours, reported 9,981: 100.0% aligned; 41 others from 2 sources."),
    # Not rounded up.
    (10_000, [(row, 9999, {}), (broken, 1, {})],
     "Google received 10,000 of yours, reported 10,000: 99.9% aligned; no others."),
    (3, [(foreign, 1, {})], "Google received 3 of yours, reported none; 1 other from 1 source."),
    (0, [(row, 2, {}), (foreign, 2, {})],
     "Google received 0 of yours, reported 2: 100.0% aligned; 2 others from 1 source."),
])  # fmt: skip
def test_a_sentence_compares_what_was_sent_and_what_was_reported(api, domain, sent, rows, summary):
    count_sent(domain, sent, day=DAY)
    add_report(domain, *[make(domain, count, **values) for make, count, values in rows], day=DAY)
    assert [one["summary"] for one in api.get(url(domain), RANGE).json()["organizations"]] == [summary]


def test_without_reports_all_is_zero(api, domain):
    body = api.get(url(domain)).json()
    assert set(body["totals"].values()) == {0}
    assert (body["coverage"], body["organizations"], body["days"]) == (None, [], [])


@each(("query", "field", "code"), [
    ({"from": "2026-11-02", "to": "2026-11-01"}, "from", "invalid_range"),
    ({"from": "2025-10-26", "to": "2026-11-30"}, "from", "invalid_range"),
    ({"from": "soon"}, "from", "invalid"), ({"days": "3"}, "days", "unknown_parameter"),
])  # fmt: skip
def test_an_invalid_range_is_refused(api, domain, query, field, code):
    for path in ("dmarc", "dmarc/sources", "tls-reports"):
        response = api.get(url(domain, path), query)
        assert response.status_code == 422
        assert [(one["field"], one["code"]) for one in response.json()["errors"]] == [(field, code)]


@each(
    "query",
    [{"from": "2025-10-27", "to": "2026-11-30"}, {"from": "0001-01-01", "to": "0001-01-02"}, {"to": "9999-12-31"}],
)
def test_the_longest_range_and_the_first_and_last_years_are_valid(api, domain, query):
    assert api.get(url(domain), query).status_code == 200


def test_sources_are_listed_with_most_messages_first(api, domain):
    other = [spf("esp.example.net"), spf("fails.example", "fail")]
    add_report(domain, row(domain, 5), foreign(domain, 2, spf_results=other), foreign(domain, 9, ip=None), day=DAY)
    add_report(domain, foreign(domain, 1, spf="pass", spf_results=[spf("b.example")]), day=DAY + timedelta(days=1))
    name_source(domain, name="example.net", label="Newsletter tool")
    listed = api.get(url(domain, "dmarc/sources"), RANGE).json()["data"]
    assert [(one["ip"], one["whose"], one["messages"], one["aligned"]) for one in listed] == [
        (None, "unknown", 9, 0), (OUR_IP, "ours", 5, 5), (OTHER_IP, "known", 2, 0), (OTHER_IP, "unknown", 1, 1),
    ]  # fmt: skip
    assert listed[2]["domains"] == ["esp.example.net"]
    assert [one["label"] for one in listed] == ["", "", "Newsletter tool", ""]
    assert (listed[3]["firstOn"], listed[3]["lastOn"]) == ("2026-11-21", "2026-11-21")


def test_a_source_is_named_by_the_api(api, domain):
    today = domain.created_at.date()
    add_report(domain, foreign(domain, 3, ip="2001:db8:1::1"), day=today)
    body = {"ip": "2001:DB8:1:0::1", "label": "Shop"}
    for _ in range(2):
        response = api.patch(url(domain, "dmarc/sources"), body)
        assert [(one["whose"], one["label"]) for one in response.json()["data"]] == [("known", "Shop")]
    assert KnownSource.objects.count() == 1
    response = api.patch(url(domain, "dmarc/sources"), {"domain": "Bücher.example", "label": "Books"})
    assert response.status_code == 200
    assert KnownSource.objects.get(ip=None).name == "xn--bcher-kva.example"
    api.patch(url(domain, "dmarc/sources"), {**body, "label": ""})
    assert DmarcRow.objects.get().whose == "unknown"
    acts = AuditEntry.objects.filter(workspace=domain.workspace, about__contains="2001:db8:1::1").values_list(
        "about", flat=True
    )
    assert sorted(acts) == ["alice.example: 2001:db8:1::1 is -", "alice.example: 2001:db8:1::1 is Shop"]


@each(("body", "field", "code"), [
    ({"label": "x"}, "ip", "required"), ({"ip": OTHER_IP, "domain": "a.example", "label": "x"}, "ip", "conflict"),
    ({"ip": "192.0.2.0/24", "label": "x"}, "ip", "invalid_ip"),
    ({"ip": "fe80::1%eth0", "label": "x"}, "ip", "invalid_ip"),
    ({"domain": "co.uk", "label": "x"}, "domain", "invalid_domain"), ({"ip": OTHER_IP}, "label", "required"),
    ({"domain": "a", "label": "x"}, "domain", "invalid_domain"),
    ({"ip": OTHER_IP, "label": "x" * 101}, "label", "max_length"),
    ({"ip": OTHER_IP, "label": "a\nb"}, "label", "invalid"),
    ({"ip": OTHER_IP, "label": "x", "name": "y"}, "name", "unknown_field"),
])  # fmt: skip
def test_an_invalid_label_is_refused(api, domain, body, field, code):
    response = api.patch(url(domain, "dmarc/sources"), body)
    assert (response.status_code, [(one["field"], one["code"]) for one in response.json()["errors"]]) == (
        422, [(field, code)],
    )  # fmt: skip
    assert not KnownSource.objects.exists()


def test_a_domain_has_a_limited_number_of_labels(api, domain):
    for number in range(MAX_KNOWN):
        KnownSource.objects.create(domain=domain, name=f"s{number}.example", label="x")
    response = api.patch(url(domain, "dmarc/sources"), {"ip": OTHER_IP, "label": "Shop"})
    assert (response.status_code, response.json()["code"], response.json()["limit"]) == (403, "plan_limit_reached", 100)
    # Another name for one of them.
    assert api.patch(url(domain, "dmarc/sources"), {"domain": "s0.example", "label": "Shop"}).status_code == 200


def test_reports_are_listed_newest_first_with_those_that_are_not_counted(api, domain):
    first = add_report(domain, row(domain, 5), day=DAY)
    second = add_report(domain, day=DAY, state="unreadable")
    add_tls_report(domain, day=DAY)
    body = api.get(url(domain, "dmarc/reports")).json()
    assert (body["total"], [one["id"] for one in body["data"]]) == (2, [second.id, first.id])
    assert [one["state"] for one in body["data"]] == ["unreadable", "read"]


def test_a_report_has_its_policy_and_its_rows_with_most_messages_first(api, domain):
    report = add_report(domain, row(domain, 5), foreign(domain, 9), day=DAY, policy="reject")
    body = api.get(url(domain, f"dmarc/reports/{report.id}")).json()
    assert (body["policy"]["p"], body["rowCount"]) == ("reject", 2)
    assert [(one["sourceIp"], one["count"], one["whose"]) for one in body["rows"]] == [
        (OTHER_IP, 9, "unknown"), (OUR_IP, 5, "ours"),
    ]  # fmt: skip
    assert body["rows"][1]["dkimResults"] == [signature(domain)]


def test_tls_reports_are_summed_by_organization_policy_and_result(api, domain):
    totals = {"policy_type": "sts", "successful": 100, "failed": 3}
    expired = {"policy_type": "sts", "result_type": "certificate-expired", "failed": 2}
    add_tls_report(domain, totals, expired, {**expired, "result_type": "starttls-not-supported", "failed": 1}, day=DAY)
    add_tls_report(domain, totals, expired, day=DAY + timedelta(days=1))
    add_tls_report(domain, {"policy_type": "no-policy-found", "successful": 8}, day=DAY, reporter="acme.example")
    body = api.get(url(domain, "tls-reports"), RANGE).json()
    assert (body["successful"], body["failed"]) == (208, 6)
    assert body["groups"] == [
        {
            "id": "google", "name": "Google", "policyType": "sts", "successful": 200, "failed": 6,
            "results": [
                {"type": "certificate-expired", "sessions": 4}, {"type": "starttls-not-supported", "sessions": 1},
            ],
        },
        {
            "id": "acme.example", "name": "acme.example", "policyType": "no-policy-found", "successful": 8, "failed": 0,
            "results": [],
        },
    ]  # fmt: skip


def test_sums_have_the_sessions_of_groups_that_are_not_shown(api, domain):
    add_tls_report(domain, *[{"policy_type": f"type{n}", "successful": 1} for n in range(501)], day=DAY)
    body = api.get(url(domain, "tls-reports"), RANGE).json()
    assert (body["successful"], len(body["groups"])) == (501, 500)


def test_domains_and_reports_of_another_workspace_are_not_found(api, bobs_api: Api, domain):
    report = add_report(domain, row(domain), day=DAY)
    for path in ("dmarc", "dmarc/sources", "dmarc/reports", f"dmarc/reports/{report.id}", "tls-reports"):
        assert bobs_api.get(url(domain, path)).status_code == 404
        assert api.get(url(domain, path)).status_code == 200
    assert bobs_api.patch(url(domain, "dmarc/sources"), {"ip": OTHER_IP, "label": "x"}).status_code == 404
    other = make_domain(domain.workspace, "other.example")
    assert api.get(url(other, f"dmarc/reports/{report.id}")).status_code == 404


def test_a_key_that_reads_cannot_name_sources(domain, alice):
    reading = Api(make_key(alice.workspace, "read_only"))
    assert reading.get(url(domain)).status_code == 200
    assert reading.patch(url(domain, "dmarc/sources"), {"ip": OTHER_IP, "label": "x"}).status_code == 403
