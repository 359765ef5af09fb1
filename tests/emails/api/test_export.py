"""`GET /v1/emails/export`: valid CSV, and no formula in a spreadsheet."""

import csv
import io
import json
from collections.abc import Iterator

import hypothesis
import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from hypothesis import given
from hypothesis import strategies as st

from core.lib.ids import to_uuid
from emails.listing.export import COLUMNS, MAX_ROWS, PAGE_ROWS, export_lines
from emails.models import Email
from tests.conftest import Api, later, mail
from tests.emails.builders import send
from tests.rows import each

NAMES = [
    "id", "to", "cc", "bcc", "from", "replyTo", "subject", "status", "tags", "createdAt", "scheduledFor", "sentAt",
    "deliveredAt", "errorMessage", "retryCount", "metadata", "stream",
]  # fmt: skip
DANGEROUS = ("=", "+", "-", "@", "\t", "\r", "\n")
# PostgreSQL cannot store NUL; requests with one are refused.
CHARACTERS = st.characters(codec="utf-8", exclude_characters="\0")
TEXTS = st.text(CHARACTERS, max_size=40) | st.builds(
    "".join, st.lists(st.sampled_from([*DANGEROUS, '"', ",", ";", "'", " ", "a"]))
)
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(-1e15, 1e15) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


def export(api: Api, **query) -> str:
    response = api.get("/emails/export", query)
    assert response.status_code == 200, response.content
    return response.getvalue().decode()


def lines_of_all() -> Iterator[str]:
    return export_lines(Email.objects.all(), list(Email.objects.values_list("id", flat=True)))


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


def multiply(email_id: str, *, times: int) -> None:
    """Copy the row of an email in the database; all copies have its created_at."""
    columns = ", ".join(f'e."{field.column}"' for field in Email._meta.concrete_fields if not field.primary_key)
    insert = f"""
        INSERT INTO emails_email (id, {columns.replace("e.", "")})
        SELECT gen_random_uuid(), {columns} FROM emails_email e, generate_series(1, %s) WHERE e.id = %s
    """
    with connection.cursor() as cursor:
        cursor.execute(insert, [times, to_uuid(email_id)])


@pytest.mark.django_db
class TestFormat:
    def test_the_export_is_a_csv_file_with_the_specified_columns(self, api: Api):
        response = api.get("/emails/export")
        assert response["Content-Type"] == "text/csv; charset=utf-8"
        assert response["Content-Disposition"].startswith("attachment; filename=")
        assert "X-Export-Truncated" not in response
        assert response.getvalue().decode() == ",".join(f'"{name}"' for name in NAMES) + "\r\n"
        assert list(COLUMNS) == NAMES

    def test_a_row_contains_all_fields_of_an_email(self, api: Api):
        sent = mail(
            to=["Ada L <ada@example.com>", "bob@example.com"],
            cc=["c@example.com", "d@example.com"],
            bcc=["e@example.com"],
            replyTo="Help <help@alice.example>",
            subject='Say "hi", 爱丽丝\u00a0😀',
            tags=["a,b", "c"],
            metadata={"é": [1, None, {"x": 'q"'}]},
            scheduledFor=later(),
        )
        email_id = api.post("/emails/send", sent).json()["id"]
        detail = api.get(f"/emails/{email_id}").json()
        (row,) = rows(export(api))
        assert row == {
            "id": email_id,
            "to": "Ada L <ada@example.com>, bob@example.com",
            "cc": "c@example.com, d@example.com",
            "bcc": "e@example.com",
            "from": "Alice <hi@alice.example>",
            "replyTo": "Help <help@alice.example>",
            "subject": sent["subject"],
            "status": "scheduled",
            "tags": "a,b, c",
            "createdAt": detail["createdAt"],
            "scheduledFor": detail["scheduledFor"],
            "sentAt": "",
            "deliveredAt": "",
            "errorMessage": "",
            "retryCount": "0",
            "metadata": row["metadata"],
            "stream": "main",
        }
        assert json.loads(row["metadata"]) == sent["metadata"]

    def test_times_and_errors_match_the_detail(self, api: Api):
        email_id = send(api)
        Email.objects.update(
            status="delivered",
            sent_at=timezone.now(),
            delivered_at=timezone.now(),
            retry_count=3,
            error_message="-1 no",
        )
        detail = api.get(f"/emails/{email_id}").json()
        (row,) = rows(export(api))
        for name in ("status", "sentAt", "deliveredAt"):
            assert row[name] == detail[name]
        assert (row["retryCount"], row["errorMessage"]) == ("3", "'-1 no")

    def test_lines_and_quotes_follow_rfc_4180(self, api: Api):
        send(api, subject='a "b", c')
        text = export(api)
        assert text.count("\r\n") == text.count("\n") == 2
        assert '"a ""b"", c"' in text

    @each("accept", ["text/csv", "*/*", "application/json", "text/*", "text/csv, application/json;q=0.5"])
    def test_the_accept_header_may_be_csv_or_a_wildcard(self, api: Api, accept):
        send(api)
        response = api.get("/emails/export", Accept=accept)
        assert (response.status_code, response["Content-Type"]) == (200, "text/csv; charset=utf-8")
        refused = api.get("/emails/export", {"status": "x"}, Accept=accept)
        assert (refused.status_code, refused["Content-Type"]) == (422, "application/problem+json")
        assert refused.json()["errors"][0]["field"] == "status"

    def test_another_format_is_406(self, api: Api):
        response = api.get("/emails/export", Accept="application/pdf")
        assert (response.status_code, response.json()["code"]) == (406, "not_acceptable")

    def test_without_a_key_the_response_is_a_problem_even_with_accept_csv(self, api: Api):
        response = Api().get("/emails/export", Accept="text/csv")
        assert (response.status_code, response["Content-Type"]) == (401, "application/problem+json")
        assert response.json()["code"] == "missing_api_key"


@pytest.mark.django_db
class TestFilters:
    def test_the_filters_of_the_list_apply(self, api: Api):
        wanted = {"tags": ["t"], "subject": "Receipt 7"}
        email_id = send(api, **wanted)
        send(api, **wanted | {"tags": ["u"]})
        send(api, **wanted | {"subject": "Invoice 7"})
        send(api, **wanted, scheduledFor=later())
        old = send(api, **wanted)
        Email.objects.filter(id=old).update(created_at="2026-01-01T00:00:00Z")
        today = timezone.now().date().isoformat()
        query = {"status": "queued,sent", "search": "RECEIPT", "tag": "t", "from": "2026-01-02", "to": today}
        assert [row["id"] for row in rows(export(api, **query))] == [email_id]
        for name in ("status", "search", "tag", "from"):
            rest = {key: value for key, value in query.items() if key != name}
            listed = [email["id"] for email in api.get("/emails", rest).json()["data"]]
            assert [row["id"] for row in rows(export(api, **rest))] == listed
            assert len(listed) == 2

    @each("query", [
        {"status": "x"}, {"search": "s" * 201}, {"from": "x"}, {"to": "x"}, {"from": "2026-02-02", "to": "2026-02-01"},
    ])  # fmt: skip
    def test_a_bad_filter_is_422(self, api: Api, query):
        response = api.get("/emails/export", query)
        assert (response.status_code, response["Content-Type"]) == (422, "application/problem+json")
        assert response.json()["errors"][0]["field"] == next(iter(query))


@pytest.mark.django_db
class TestManyRows:
    def test_10000_rows_are_complete_and_one_more_is_truncated(self, api: Api):
        oldest, email_id = send(api, subject="oldest"), send(api)
        Email.objects.filter(id=oldest).update(created_at="2026-01-01T00:00:00Z")
        multiply(email_id, times=MAX_ROWS - 2)
        whole = api.get("/emails/export")
        assert "X-Export-Truncated" not in whole
        ids = [row["id"] for row in rows(whole.getvalue().decode())]
        assert len(ids) == len(set(ids)) == MAX_ROWS == 10_000
        assert ids[-1] == oldest
        assert ids[:-1] == sorted(ids[:-1], reverse=True), "the order is the list's"
        multiply(oldest, times=1)
        Email.objects.filter(subject="oldest").exclude(id=oldest).update(created_at="2025-01-01T00:00:00Z")
        cut = api.get("/emails/export")
        assert cut["X-Export-Truncated"] == "true"
        assert [row["id"] for row in rows(cut.getvalue().decode())] == ids, "the newest stay"

    def test_rows_are_read_in_pages_while_they_are_sent(self, api: Api):
        email_id = send(api)
        multiply(email_id, times=2 * PAGE_ROWS)
        lines = lines_of_all()
        next(lines)
        with CaptureQueriesContext(connection) as queries:
            next(lines)
            assert len(queries) == 1
            for _ in range(PAGE_ROWS):
                next(lines)
            assert len(queries) == 2
        assert len(list(lines)) == PAGE_ROWS

    def test_emails_accepted_during_an_export_neither_duplicate_nor_hide_a_row(self, api: Api):
        email_id = send(api)
        multiply(email_id, times=PAGE_ROWS + 10)
        expected = set(Email.objects.values_list("id", flat=True))
        lines = lines_of_all()
        first = [next(lines) for _ in range(PAGE_ROWS)]
        send(api, subject="late")
        text = "".join([*first, *lines])
        ids = [row["id"] for row in rows(text)]
        assert len(ids) == len(set(ids))
        assert set(ids) == expected


@pytest.mark.django_db
class TestFormulas:
    @each("start", DANGEROUS)
    def test_a_cell_that_a_spreadsheet_would_run_gets_an_apostrophe(self, api: Api, start):
        send(api)
        Email.objects.update(subject=f"{start}1+1", error_message=f"{start}x", reply_to=f"{start}y")
        (row,) = rows(export(api))
        assert (row["subject"], row["errorMessage"], row["replyTo"]) == (f"'{start}1+1", f"'{start}x", f"'{start}y")

    def test_every_cell_with_user_input_is_escaped(self, api: Api):
        sent = mail(
            to="+1@example.com",
            cc=["=2@example.com"],
            bcc=["-3@example.com"],
            replyTo="+4@alice.example",
            subject="=5",
            tags=["@6", "=7"],
            **{"from": "-8@alice.example"},
        )
        assert api.post("/emails/send", sent).status_code == 202
        (row,) = rows(export(api))
        for name in ("to", "cc", "bcc", "replyTo", "subject", "tags", "from"):
            assert row[name].startswith("'"), name

    def test_harmless_cells_are_unchanged(self, api: Api):
        for subject in ("1+1", "a=b", "'quoted'", " =1", "Re: -5 %", "٣"):
            send(api, subject=subject)
        assert {row["subject"] for row in rows(export(api))} == {"1+1", "a=b", "'quoted'", " =1", "Re: -5 %", "٣"}


# All examples share one row, and each overwrites it.
ONE_ROW = hypothesis.settings(suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture])


@pytest.mark.django_db
class TestAnyText:
    @pytest.fixture
    def one(self, api: Api) -> None:
        send(api)

    def written(self, **fields) -> dict[str, str]:
        Email.objects.update(**fields)
        (row,) = rows("".join(lines_of_all()))
        return row

    @given(st.lists(TEXTS, min_size=5, max_size=5), st.lists(TEXTS, max_size=3))
    @ONE_ROW
    def test_no_cell_begins_a_formula_and_none_breaks_out_of_its_column(self, one, texts, tags):
        to, cc, sender, subject, error = texts
        row = self.written(
            to=[to], cc=[cc], bcc=tags, sender=sender, reply_to=to, subject=subject, tags=tags, error_message=error
        )
        assert list(row) == NAMES
        assert not any(value.startswith(DANGEROUS) for value in row.values())
        assert row["subject"] in {subject, f"'{subject}"}
        assert row["tags"] in {", ".join(tags), f"'{', '.join(tags)}"}

    @given(st.none() | st.dictionaries(TEXTS, JSON_VALUES, max_size=4))
    @ONE_ROW
    def test_metadata_round_trips(self, one, metadata):
        cell = self.written(metadata=metadata)["metadata"]
        assert (json.loads(cell) if cell else None) == metadata
