"""`GET /v1/emails`: filters, search, exact totals, pagination, isolation of workspaces."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from hypothesis import given
from hypothesis import strategies as st

from core.counters import counters
from core.lib.ids import uuid_text
from emails.accept.insertion import search_text
from emails.listing.filters import EmailFilters
from emails.models import Email
from emails.states import EmailStatus
from events.kinds import RARE_KINDS
from events.models import Event
from tests.conftest import Api, field_codes, later
from tests.emails.builders import send
from tests.rows import each

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 3, 15, 12, tzinfo=UTC)


def created_at(email_id: str, time: datetime) -> None:
    Email.objects.filter(id=email_id).update(created_at=time)


def list_ids(api: Api, **query) -> list[str]:
    """Return the ids of a list, and check that its total is their number."""
    response = api.get("/emails", {"limit": 100, **query})
    body = response.json()
    assert response.status_code == 200, body
    assert body["total"] == len(body["data"])
    return [email["id"] for email in body["data"]]


@pytest.fixture
def one_of_each(api: Api, alice) -> dict[str, str]:
    """Create an email in every status, with the counter changes of its transition."""
    ids = {}
    for state in EmailStatus:
        ids[state.value] = send(api)
        Email.objects.filter(id=ids[state.value]).update(status=state)
        created = Email.objects.get(id=ids[state.value]).created_at
        changes = [
            (counters.CounterKey(alice.workspace.id, created, f"status.{name}"), n)
            for name, n in (("queued", -1), (state, 1))
        ]
        counters.add(changes)
    return ids


class TestShape:
    def test_an_item_has_the_specified_fields(self, api: Api):
        email_id = send(api, to=["Ada L <ada@example.com>", "bob@example.com"], bcc=["c@example.com"])
        body = api.get("/emails").json()
        created = api.get(f"/emails/{email_id}").json()["createdAt"]
        assert body == {
            "data": [
                {
                    "id": email_id,
                    "to": "Ada L <ada@example.com>, bob@example.com",
                    "from": "Alice <hi@alice.example>",
                    "subject": "Hello",
                    "status": "queued",
                    "createdAt": created,
                    "sentAt": None,
                }
            ],
            "total": 1,
            "page": 1,
            "limit": 20,
        }

    def test_without_emails_the_list_is_empty(self, api: Api):
        assert api.get("/emails").json() == {"data": [], "total": 0, "page": 1, "limit": 20}

    def test_empty_parameters_do_not_narrow(self, api: Api):
        email_id = send(api)
        assert list_ids(api, status="", search="", tag="", **{"from": "", "to": ""}) == [email_id]

    def test_a_percent_sign_in_an_invalid_value_is_shown_as_it_is(self, api: Api):
        (error,) = api.get("/emails", {"status": "100%s"}).json()["errors"]
        assert error["detail"].startswith("Unknown name '100%s'. Use one of: ")

    def test_retrieving_one_ignores_the_filters_of_the_list(self, api: Api):
        email_id = send(api)
        assert api.get(f"/emails/{email_id}", {"status": "nonsense", "from": "x"}).status_code == 200

    def test_the_last_of_repeated_parameters_counts(self, api: Api):
        email_id = send(api, tags=["b"])
        assert [email["id"] for email in api.get("/emails?tag=a&tag=b").json()["data"]] == [email_id]

    def test_an_id_is_found_in_either_spelling(self, api: Api, bobs_api: Api):
        email_id, _other = send(api), send(api)
        foreign = send(bobs_api, **{"from": "x@bob.example"})
        for text in (email_id, uuid_text(email_id), f" {uuid_text(email_id).upper()} "):
            assert list_ids(api, search=text) == [email_id]
        assert list_ids(api, search=uuid_text(foreign)) == []
        assert list_ids(api, search=uuid_text(email_id), tag="none") == []
        titled = send(api, subject=uuid_text(foreign))
        assert list_ids(api, search=uuid_text(foreign)) == [titled]

    def test_a_uuid_is_an_id(self, api: Api, bobs_api: Api):
        email_id = send(api)
        assert api.get(f"/emails/{uuid_text(email_id)}").json() == api.get(f"/emails/{email_id}").json()
        assert api.get(f"/emails/{uuid_text(email_id)}/events").status_code == 200
        assert bobs_api.get(f"/emails/{uuid_text(email_id)}").status_code == 404
        assert api.get("/emails/00000000-0000-4000-8000-000000000000").status_code == 404
        template = api.post("/templates", {"name": "T", "subject": "S", "htmlContent": "H"}).json()["id"]
        other = uuid_text(template, prefix="tpl_")
        assert api.get(f"/templates/{other}").json()["id"] == template
        body = {"from": "hi@alice.example", "to": "ada@example.com", "templateId": other}
        assert api.post("/emails/send", body).status_code == 202

    @each("query", [
        {}, {"search": "hello"}, {"status": "queued"}, {"tag": "t"}, {"from": "2000-01-01"},
        {"search": "h", "tag": "t"},
    ])  # fmt: skip
    def test_foreign_rows_are_never_listed_or_counted(self, api: Api, bobs_api: Api, query):
        send(api, tags=["t"])
        own = send(bobs_api, tags=["t"], **{"from": "x@bob.example"})
        assert list_ids(bobs_api, **query) == [own]


class TestPages:
    def test_the_newest_comes_first(self, api: Api):
        ids = [send(api) for _ in range(3)]
        for day, email_id in enumerate((ids[1], ids[0], ids[2])):
            created_at(email_id, NOON + timedelta(days=day))
        assert list_ids(api) == [ids[2], ids[0], ids[1]]

    @each("query", [{}, {"search": "hello"}, {"status": "queued"}, {"tag": "t"}])
    def test_the_order_is_stable_where_times_are_equal(self, api: Api, query):
        ids = {send(api, tags=["t"]) for _ in range(7)}
        Email.objects.update(created_at=NOON)
        pages = [api.get("/emails", {**query, "limit": 2, "page": page}).json() for page in range(1, 6)]
        seen = [email["id"] for page in pages for email in page["data"]]
        assert seen == sorted(ids, reverse=True)
        assert {page["total"] for page in pages} == {7}

    @each("query", [{}, {"search": "hello"}, {"tag": "t"}])
    @each(("asked", "served"), [
        ({}, (3, 1, 20)), ({"limit": 2}, (2, 1, 2)), ({"limit": 2, "page": 2}, (1, 2, 2)),
        ({"limit": 2, "page": 3}, (0, 3, 2)), ({"page": 999_999_999}, (0, 999_999_999, 20)),
        ({"limit": 100}, (3, 1, 100)), ({"limit": 101}, (3, 1, 100)),
    ])  # fmt: skip
    def test_page_and_limit_select_the_emails(self, api: Api, query, asked, served):
        for _ in range(3):
            send(api, tags=["t"])
        body = api.get("/emails", query | asked).json()
        assert (len(body["data"]), body["page"], body["limit"]) == served
        assert body["total"] == 3

    @each("name", ["page", "limit"])
    @each("value", ["0", "-1", "x", "1.5", "", "1e3", "٣", "9" * 30])
    def test_an_invalid_page_or_limit_is_422(self, api: Api, name, value):
        assert field_codes(api.get("/emails", {name: value})).keys() == {name}

    def test_a_list_takes_a_fixed_number_of_statements(self, api: Api, django_assert_max_num_queries):
        for _ in range(20):
            send(api, to=["a@example.com", "b@example.com"])
        with django_assert_max_num_queries(2):
            assert len(api.get("/emails").json()["data"]) == 20
        # The first search of a process reads the common trigrams.
        api.get("/emails", {"search": "hello"})
        with django_assert_max_num_queries(2):
            assert len(api.get("/emails", {"search": "hello"}).json()["data"]) == 20


class TestStatus:
    @each("state", EmailStatus.values)
    def test_each_of_the_nine_statuses_is_found(self, api: Api, one_of_each, state):
        assert list_ids(api, status=state) == [one_of_each[state]]

    def test_a_comma_list_finds_any_of_them(self, api: Api, one_of_each):
        found = {one_of_each[state] for state in ("sent", "opened", "cancelled")}
        assert set(list_ids(api, status="sent, opened,cancelled,sent")) == found
        assert set(list_ids(api, status=",".join(EmailStatus.values))) == set(one_of_each.values())

    def test_a_repeated_parameter_finds_any_of_them(self, api: Api, one_of_each):
        found = {one_of_each[state] for state in ("sent", "opened", "cancelled")}
        assert set(list_ids(api, status=["sent,opened", "cancelled"])) == found
        assert field_codes(api.get("/emails", {"status": ["unknown", "sent"]})) == {"status": "unknown"}
        assert set(list_ids(api, event=["queued", "complained"])) == set(one_of_each.values())

    @each("status", ["unknown", "QUEUED", "queued,", ",", "queued;sent", "queued,unknown", "%"])
    def test_an_unknown_status_is_422(self, api: Api, status):
        assert field_codes(api.get("/emails", {"status": status})) == {"status": "unknown"}

    def test_totals_are_exact_whether_the_counters_are_folded_or_not(self, api: Api, one_of_each):
        def totals():
            queries = ({}, {"status": "queued"}, {"status": "queued,clicked"})
            return [len(list_ids(api, **query)) for query in queries]

        assert totals() == [9, 1, 2]
        counters.fold()
        assert totals() == [9, 1, 2]
        send(api)
        assert totals() == [10, 2, 3]
        counters.fold()
        assert totals() == [10, 2, 3]

    def test_totals_follow_status_changes(self, api: Api):
        time = later()
        email_id = send(api, scheduledFor=time)
        assert (list_ids(api, status="scheduled"), list_ids(api, status="queued")) == ([email_id], [])
        counters.fold()
        api.patch(f"/emails/{email_id}", {"scheduledFor": None})
        assert (list_ids(api, status="scheduled"), list_ids(api, status="queued")) == ([], [email_id])


class TestSearch:
    @each(("search", "is_found"), [
        ("ada@example.com", True), ("ADA@EXAMPLE", True), ("a", True), ("ada l", True), ("receipt #100%", True),
        ("RECEIPT", True), ("100%_off", True), ("100%", True), ("%", True), ("_", True), ("0%o", False), ("1%0", False),
        ("a_a", False), ("re.eipt", False), ("c:\\temp", True), ("\\", True), ("\\\\", False), ("\\%", False),
        ("'; DROP TABLE", False), ("hi@alice.example", False), ("bcc@example.com", False), ("cc@example.com", False),
        ("  ", False), ("<p>", False),
    ])  # fmt: skip
    def test_a_search_is_a_literal_part_of_to_or_subject(self, api: Api, search, is_found):
        send(api, subject="other", to="x@y.example")
        copies = {"cc": ["cc@example.com"], "bcc": ["bcc@example.com"]}
        email_id = send(api, to="Ada L <ada@example.com>", subject=r"Receipt #100%_off C:\temp", **copies)
        assert (email_id in list_ids(api, search=search)) == is_found

    @each(("subject", "search"), [
        ("Grüße", "GRÜSSE"), ("STRASSE", "straße"), ("Ünal ÅSA", "ünal åsa"), ("ΟΔΟΣ ΑΣΕ", "Σ"), ("ΟΔΟΣ ΑΣΕ", "ΑΣ"),
        ("οδος", "ΟΔΟΣ"), ("İstanbul", "i"), ("领取您的 礼物", "您的 礼"), ("Hi 😀 there", "😀"), ("ПРИВЕТ", "привет"),
        ("สวัสดี", "วัส"),
    ])  # fmt: skip
    def test_every_script_is_compared_case_insensitively(self, api: Api, subject, search):
        email_id = send(api, subject=subject)
        assert list_ids(api, search=search) == [email_id]

    def test_any_of_the_recipients_is_found_and_no_match_spans_recipient_and_subject(self, api: Api):
        email_id = send(api, to=["bob@example.com", "ada@example.com"], subject="Hello")
        assert list_ids(api, search="ada@") == list_ids(api, search="bob@") == [email_id]
        assert list_ids(api, search="com hello") == list_ids(api, search="comhello") == []
        assert field_codes(api.get("/emails", {"search": "a\0"})).keys() == {"search"}

    def test_a_rendered_subject_is_found(self, api: Api):
        template = {"name": "t", "subject": "Order {{number}}", "htmlContent": "<p>"}
        template_id = api.post("/templates", template).json()["id"]
        email_id = send(api, html=None, subject=None, templateId=template_id, templateData={"number": 4711})
        assert list_ids(api, search="order 4711") == [email_id]

    @each("character", ["x", "é", "😀"])
    def test_200_characters_pass_and_201_do_not(self, api: Api, character):
        email_id = send(api, subject=character * 250)
        assert list_ids(api, search=character * 200) == [email_id]
        assert field_codes(api.get("/emails", {"search": character * 201})) == {"search": "max_length"}

    @given(st.text(min_size=1, max_size=40), st.data())
    def test_every_substring_of_a_subject_is_in_the_search_text(self, subject, data):
        start = data.draw(st.integers(0, len(subject) - 1))
        end = data.draw(st.integers(start + 1, len(subject)))
        assert subject[start:end].casefold() in search_text(["a@b.co"], subject)


class TestTag:
    def test_a_tag_matches_exactly_and_case_sensitively(self, api: Api):
        email_id = send(api, tags=["welcome", "a,b", "100%"])
        assert list_ids(api, tag="welcome") == list_ids(api, tag="a,b") == list_ids(api, tag="100%") == [email_id]
        for other in ("Welcome", "welc", "%", "a", "welcome,a,b", "{welcome}"):
            assert list_ids(api, tag=other) == []

    def test_255_characters_pass_and_256_do_not(self, api: Api):
        email_id = send(api, tags=["t" * 255])
        assert list_ids(api, tag="t" * 255) == [email_id]
        assert field_codes(api.get("/emails", {"tag": "t" * 256})) == {"tag": "max_length"}


class TestRange:
    @each(("query", "is_found"), [
        ({"from": "2026-03-15T12:00:00Z"}, True), ({"from": "2026-03-15T12:00:00.001Z"}, False),
        ({"from": "2026-03-15T12:00:00.000001Z"}, False), ({"to": "2026-03-15T12:00:00Z"}, True),
        ({"to": "2026-03-15T11:59:59.999Z"}, False),
        ({"from": "2026-03-15T12:00:00Z", "to": "2026-03-15T12:00:00Z"}, True),
        ({"from": "2026-03-15T14:00:00+02:00"}, True), ({"from": "2026-03-15T14:00:01+02:00"}, False),
        ({"from": "2026-03-15T14:00:00 02:00"}, True), ({"to": "2026-03-15T04:00:00-08:00"}, True),
        ({"to": "2026-03-15T03:59:59-08:00"}, False), ({"from": "2026-03-15T12:00"}, True),
        ({"from": "2026-03-15 12:00:00"}, True), ({"from": "2026-03-15"}, True), ({"to": "2026-03-15"}, True),
        ({"from": "2026-03-15", "to": "2026-03-15"}, True), ({"from": "2026-03-16"}, False),
        ({"to": "2026-03-14"}, False), ({"from": "0001-01-01", "to": "9999-12-31"}, True),
        ({"from": "0001-01-01T00:00:00+14:00", "to": "9999-12-31T23:59:59.999-14:00"}, True),
    ])  # fmt: skip
    def test_a_range_includes_both_ends(self, api: Api, query, is_found):
        email_id = send(api)
        created_at(email_id, NOON)
        assert list_ids(api, **query) == ([email_id] if is_found else [])

    @each(("time", "is_found"), [
        ("2026-03-14T23:59:59.999999+00:00", False),
        ("2026-03-15T00:00:00+00:00", True),
        ("2026-03-15T23:59:59.999999+00:00", True),
        ("2026-03-16T00:00:00+00:00", False),
    ])  # fmt: skip
    def test_a_date_covers_the_whole_utc_day(self, api: Api, time, is_found):
        email_id = send(api)
        created_at(email_id, datetime.fromisoformat(time))
        assert (email_id in list_ids(api, **{"from": "2026-03-15", "to": "2026-03-15"})) == is_found

    def test_a_range_that_ends_at_a_displayed_created_at_includes_the_email(self, api: Api):
        email_id = send(api)
        created_at(email_id, NOON.replace(microsecond=123_999))
        shown = api.get(f"/emails/{email_id}").json()["createdAt"]
        assert list_ids(api, **{"from": shown, "to": shown}) == [email_id]

    @each(("start", "end"), [
        ("2026-03-16", "2026-03-15"),
        ("2026-03-15T12:00:00.002Z", "2026-03-15T12:00:00.001Z"),
        ("2026-03-15T12:00:00-01:00", "2026-03-15T12:00:00Z"),
    ])  # fmt: skip
    def test_a_range_that_ends_before_it_begins_is_422(self, api: Api, start, end):
        assert field_codes(api.get("/emails", {"from": start, "to": end})).keys() == {"from"}

    @each("name", ["from", "to"])
    @each("value", [
        "x", "15.03.2026", "2026-02-30", "2026-3-15", "12:00", "2026-03-15T25:00Z", "2026-03-15T12:00-16:00",
        "1773576000", "\0", "2026-03",
    ])  # fmt: skip
    def test_an_invalid_date_is_422(self, api: Api, name, value):
        assert field_codes(api.get("/emails", {name: value})).keys() == {name}


class TestCombinedFilters:
    def test_all_filters_narrow_together(self, api: Api):
        wanted = {"tags": ["t"], "subject": "Receipt 7", "to": "ada@example.com"}
        email_id = send(api, **wanted)
        others = [
            send(api, **wanted | {"tags": ["u"]}),
            send(api, **wanted | {"subject": "Invoice 7"}),
            send(api, **wanted, scheduledFor=later()),
            send(api, **wanted),
        ]
        created_at(others[3], NOON - timedelta(days=365))
        query = {"status": "queued,sent", "search": "RECEIPT", "tag": "t", "from": "2026-03-15"}
        assert list_ids(api, **query) == [email_id]
        for name, more in (("tag", others[0]), ("search", others[1]), ("status", others[2]), ("from", others[3])):
            rest = {key: value for key, value in query.items() if key != name}
            assert set(list_ids(api, **rest)) == {email_id, more}

    def test_all_invalid_filters_are_reported_together(self, api: Api):
        query = {"status": "x", "search": "s" * 201, "tag": "t" * 256, "from": "x", "to": "y"}
        errors = api.get("/emails", query).json()["errors"]
        assert {error["field"] for error in errors} == query.keys()


class TestEvents:
    def test_emails_are_filtered_by_an_event_of_their_timeline(self, api: Api):
        first, second, third = (send(api) for _ in range(3))
        Event.objects.bulk_create(event_of(email, "complained") for email in (first, first, third))
        Event.objects.bulk_create([event_of(second, "deferred"), event_of(third, "unsubscribed")])
        assert set(list_ids(api, event="complained")) == {third, first}
        assert set(list_ids(api, event="email.complained")) == {third, first}
        assert set(list_ids(api, event="deferred,unsubscribed")) == {third, second}
        assert set(list_ids(api, event="queued")) == {third, second, first}
        assert list_ids(api, event="cancelled") == []
        assert set(list_ids(api, event="")) == {third, second, first}

    def test_the_filter_applies_to_the_export_and_beside_other_filters(self, api: Api):
        first, second = send(api, tags=["a"]), send(api, subject="Invoice")
        Event.objects.bulk_create(event_of(email, "complained") for email in (first, second))
        send(api)
        assert list_ids(api, event="complained", tag="a") == [first]
        assert list_ids(api, event="complained", search="invoice") == [second]
        assert set(list_ids(api, event="complained", status="queued")) == {second, first}
        lines = b"".join(api.get("/emails/export", {"event": "complained"}).streaming_content).splitlines()
        assert len(lines) == 1 + 2

    def test_events_of_another_workspace_are_not_counted(self, api: Api, bobs_api: Api):
        email_id = send(bobs_api, **{"from": "x@bob.example"})
        Event.objects.bulk_create([event_of(email_id, "complained")])
        assert list_ids(api, event="complained") == []

    @each(("event", "hint"), [("complaint", "complained"), ("soft_bounce", "deferred")])
    def test_an_unknown_event_is_422_with_a_suggestion(self, api: Api, event, hint):
        (error,) = api.get("/emails", {"event": f"sent,{event}"}).json()["errors"]
        assert (error["field"], error["code"]) == ("event", "unknown")
        assert f" Did you mean {hint!r}? " in error["detail"]

    @pytest.mark.parametrize("kind", RARE_KINDS)
    def test_rare_events_are_read_from_their_index(self, api: Api, alice, kind):
        email_id = send(api)
        Event.objects.bulk_create(event_of(email_id, "sent") for _ in range(5000))
        Event.objects.bulk_create([event_of(email_id, kind)])
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE emails_event")
        emails = Email.objects.filter(workspace=alice.workspace)
        assert "event_rare" in EmailFilters.base_filters["event"].filter(emails, [kind]).explain()


def event_of(email_id: str, kind: str) -> Event:
    return Event(email_id=email_id, kind=kind, payload={"emailId": email_id}, created_at=NOON)
