"""`/v1/suppressions`: an address is suppressed once, regardless of case."""

from datetime import datetime

import pytest
from django.db import connection

from suppressions.models import Suppression
from suppressions.services import (
    SuppressionMatch,
    delete_suppression,
    find_suppressed,
    find_suppressed_sendings,
    suppress_address,
    suppress_addresses,
    suppressed_fragment,
)
from tests.conftest import Api, field_codes, make_account
from tests.plans import plan_of
from tests.rows import each
from tests.threads import run_concurrently

Reason = Suppression.Reason


def many(count: int) -> list[str]:
    return [f"a{number}@example.com" for number in range(count)]


@pytest.mark.django_db
class TestCreating:
    def test_an_address_is_suppressed_manually(self, api: Api):
        response = api.post("/suppressions", {"email": "Ada@Example.com"})
        body = response.json()
        assert response.status_code == 201
        assert body.keys() == {"id", "email", "reason", "createdAt"}
        assert body["id"].startswith("sup_")
        assert (body["email"], body["reason"]) == ("Ada@example.com", "manual")
        assert datetime.fromisoformat(body["createdAt"]).tzinfo
        assert api.get(f"/suppressions/{body['id']}").json() == body

    @each("again", ["ada@example.com", "ADA@EXAMPLE.COM", "Ada L <aDa@example.com>"])
    def test_suppressing_again_is_200_and_changes_nothing(self, api: Api, again):
        first = api.post("/suppressions", {"email": "ada@example.com"})
        response = api.post("/suppressions", {"email": again})
        assert (response.status_code, response.json()) == (200, first.json())
        assert Suppression.objects.count() == 1

    def test_a_suppressed_address_keeps_its_reason(self, api: Api, alice):
        row, _ = suppress_address(alice.workspace, address="ada@example.com", reason=Reason.BOUNCE)
        response = api.post("/suppressions", {"email": "ada@example.com"})
        assert (response.status_code, response.json()["id"], response.json()["reason"]) == (200, row.id, "bounce")

    def test_an_international_domain_is_stored_and_compared_as_its_a_label(self, api: Api):
        first = api.post("/suppressions", {"email": "ada@Bücher.example"})
        again = api.post("/suppressions", {"email": "ada@XN--BCHER-KVA.example"})
        assert first.json()["email"] == "ada@xn--bcher-kva.example"
        assert (again.status_code, again.json()) == (200, first.json())

    def test_many_are_returned_in_the_order_of_the_request(self, api: Api):
        old = api.post("/suppressions", {"email": "old@example.com"}).json()
        given = ["c@example.com", "OLD@example.com", "a@example.com", "C@Example.com"]
        response = api.post("/suppressions", {"emails": given})
        data = response.json()["data"]
        assert response.status_code == 201
        assert [row["email"] for row in data] == [
            "c@example.com",
            "old@example.com",
            "a@example.com",
            "c@example.com",
        ]
        assert data[1] == old
        assert data[3] == data[0]
        assert Suppression.objects.count() == 3

    def test_many_without_a_new_one_are_200(self, api: Api):
        first = api.post("/suppressions", {"emails": many(3)})
        again = api.post("/suppressions", {"emails": many(3)})
        assert (first.status_code, again.status_code) == (201, 200)
        assert again.json() == first.json()

    def test_1000_addresses_pass_and_1001_do_not(self, api: Api):
        assert api.post("/suppressions", {"emails": many(1000)}).status_code == 201
        response = api.post("/suppressions", {"emails": many(1001)})
        assert field_codes(response) == {"emails": "max_length"}
        assert Suppression.objects.count() == 1000

    def test_a_thousand_take_as_many_statements_as_one(self, api: Api, django_assert_num_queries):
        # One statement, and one each for events and the audit log entry if an address is new.
        calls = (({"email": "one@example.com"}, 3), ({"emails": many(1000)}, 3), ({"emails": many(1000)}, 1))
        for body, count in calls:
            api.get("/me")  # reads the API key and records its use
            with django_assert_num_queries(count):
                api.post("/suppressions", body)

    @each(
        ("body", "field", "code"),
        [
            ({}, "email", "required"),
            ({"email": None}, "email", "required"),
            ({"email": 7}, "email", "invalid"),
            ({"email": "ada"}, "email", "invalid_email"),
            ({"email": "ada@example.com\n"}, "email", "invalid_email"),
            ({"email": ["ada@example.com"]}, "email", "invalid"),
            ({"email": "a@example.com", "emails": ["b@example.com"]}, "emails", "invalid"),
            ({"emails": []}, "emails", "required"),
            ({"emails": "ada@example.com"}, "emails", "invalid_type"),
            ({"emails": [*many(3), "ada"]}, "emails[3]", "invalid_email"),
            ({"email": "ada@example.com", "reason": "bounce"}, "reason", "unknown_field"),
        ],
    )
    def test_an_invalid_address_is_rejected_with_its_field(self, api: Api, body, field, code):
        assert field_codes(api.post("/suppressions", body)) == {field: code}
        assert not Suppression.objects.exists()

    def test_each_workspace_has_its_own_list(self, api: Api, bobs_api: Api):
        first = api.post("/suppressions", {"email": "ada@example.com"})
        second = bobs_api.post("/suppressions", {"email": "ada@example.com"})
        assert (first.status_code, second.status_code) == (201, 201)
        assert first.json()["id"] != second.json()["id"]


@pytest.mark.django_db
class TestListing:
    def test_the_newest_comes_first_50_a_page(self, api: Api):
        api.post("/suppressions", {"emails": many(50)})
        api.post("/suppressions", {"email": "last@example.com"})
        # All rows of one statement have the same time; moved back so that the last address is the newest.
        Suppression.objects.exclude(email="last@example.com").update(created_at="2026-01-01T00:00:00Z")
        body = api.get("/suppressions").json()
        assert (len(body["data"]), body["total"], body["page"], body["limit"]) == (50, 51, 1, 50)
        assert body["data"][0]["email"] == "last@example.com"
        rest = api.get("/suppressions", {"page": 2}).json()["data"]
        assert len({row["id"] for row in body["data"] + rest}) == 51

    @each("reason", list(Reason))
    def test_a_reason_filters_the_list(self, api: Api, alice, reason):
        for other in Reason:
            suppress_address(alice.workspace, address=f"{other}@example.com", reason=other)
        body = api.get("/suppressions", {"reason": reason}).json()
        assert [row["reason"] for row in body["data"]] == [reason]
        assert body["total"] == 1

    @each("reason", ["bored", "BOUNCE", "bounce,manual", "\0"])
    def test_an_unknown_reason_is_422(self, api: Api, reason):
        response = api.get("/suppressions", {"reason": reason})
        assert field_codes(response) == {"reason": "invalid_choice"}
        assert response.json()["errors"][0]["detail"] == f"This must be one of {', '.join(Reason.values)}."

    @each(
        ("search", "found"),
        [
            ("ADA", {"ada@example.com", "Ada_L@example.com"}),
            ("a_l", {"Ada_L@example.com"}),
            ("_", {"Ada_L@example.com"}),
            ("%", {"x%y@example.com"}),
            ("x%y@", {"x%y@example.com"}),
            ("%example", set()),
            ("\\", set()),
            ("@EXAMPLE.com", {"ada@example.com", "Ada_L@example.com", "x%y@example.com"}),
            ("", {"ada@example.com", "Ada_L@example.com", "x%y@example.com"}),
        ],
    )
    def test_a_search_is_literal_and_ignores_case(self, api: Api, search, found):
        api.post("/suppressions", {"emails": ["ada@example.com", "Ada_L@example.com", "x%y@example.com"]})
        body = api.get("/suppressions", {"search": search}).json()
        assert {row["email"] for row in body["data"]} == found
        assert body["total"] == len(found)

    def test_a_search_has_at_most_200_characters(self, api: Api):
        assert api.get("/suppressions", {"search": "é" * 200}).status_code == 200
        assert field_codes(api.get("/suppressions", {"search": "é" * 201})) == {"search": "max_length"}

    def test_a_nul_in_a_search_is_422(self, api: Api):
        assert field_codes(api.get("/suppressions", {"search": "a\0"})).keys() == {"search"}

    def test_all_invalid_filters_are_reported_at_once(self, api: Api):
        refused = api.get("/suppressions", {"search": "x" * 201, "reason": "bored"})
        assert field_codes(refused).keys() == {"search", "reason"}

    def test_retrieving_one_ignores_the_filters_of_the_list(self, api: Api):
        created = api.post("/suppressions", {"email": "ada@example.com"}).json()
        assert api.get(f"/suppressions/{created['id']}", {"reason": "bored", "search": "zzz"}).json() == created


@pytest.mark.django_db
class TestDeleting:
    def test_a_deleted_suppression_is_gone_and_deleting_again_is_404(self, api: Api):
        created = api.post("/suppressions", {"email": "ada@example.com"}).json()
        response = api.delete(f"/suppressions/{created['id']}")
        assert response.status_code == 200
        assert response.json() == {"id": created["id"], "email": "ada@example.com", "deleted": True}
        assert not Suppression.objects.exists()
        assert api.delete(f"/suppressions/{created['id']}").status_code == 404
        assert api.get(f"/suppressions/{created['id']}").status_code == 404

    def test_an_address_can_be_suppressed_again_after_deletion(self, api: Api):
        first = api.post("/suppressions", {"email": "ada@example.com"}).json()
        api.delete(f"/suppressions/{first['id']}")
        again = api.post("/suppressions", {"email": "ada@example.com"})
        assert again.status_code == 201
        assert again.json()["id"] != first["id"]

    def test_the_second_of_two_concurrent_deletions_gets_the_404_of_an_unknown_id(self, api: Api, monkeypatch):
        created = api.post("/suppressions", {"email": "ada@example.com"}).json()

        def deleted_twice(suppression):
            delete_suppression(suppression)
            delete_suppression(suppression)

        monkeypatch.setattr("suppressions.views.delete_suppression", deleted_twice)
        second = api.delete(f"/suppressions/{created['id']}")
        unknown = api.delete("/suppressions/sup_" + "0" * 22)
        assert second.status_code == 404
        assert {**second.json(), "requestId": ""} == {**unknown.json(), "requestId": ""}


@pytest.mark.django_db
class TestLookup:
    def test_suppressed_addresses_are_found_by_normalized_address_in_one_query(
        self, alice, bob, django_assert_num_queries
    ):
        suppress_address(bob.workspace, address="bob@example.com", reason=Reason.MANUAL)
        row, _ = suppress_address(alice.workspace, address="Ada@example.com", reason=Reason.COMPLAINT)
        with django_assert_num_queries(1):
            found = find_suppressed(alice.workspace.id, ["ADA@example.com", "bob@example.com", *many(1000)])
        assert found == {"ada@example.com": SuppressionMatch(row.id, "Ada@example.com", "complaint")}

    def test_pairs_of_many_workspaces_are_found_as_given_in_one_query(self, alice, bob, django_assert_num_queries):
        for workspace in (alice.workspace, bob.workspace):
            suppress_address(workspace, address=f"{workspace.name}@example.com", reason=Reason.BOUNCE)
        pairs = [
            (workspace.id, address, "main")
            for workspace in (alice.workspace, bob.workspace)
            for address in ("Alice@example.com", "alice@example.com", "BOB@example.com", *many(500))
        ]
        with django_assert_num_queries(1):
            found = find_suppressed_sendings(pairs)
        assert {pair: match.email for pair, match in found.items()} == {
            (alice.workspace.id, "Alice@example.com", "main"): "alice@example.com",
            (alice.workspace.id, "alice@example.com", "main"): "alice@example.com",
            (bob.workspace.id, "BOB@example.com", "main"): "bob@example.com",
        }

    def test_no_addresses_have_no_suppressions(self, alice):
        assert find_suppressed(alice.workspace.id, []) == {}
        assert find_suppressed_sendings([]) == {}
        assert suppress_addresses(alice.workspace, addresses=[], reason=Reason.MANUAL) == []

    def test_the_lookup_of_a_claim_uses_the_index(self, alice):
        suppress_addresses(alice.workspace, addresses=many(5000), reason=Reason.BOUNCE)
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE suppressions_suppression")
        find = suppressed_fragment(alice.workspace.id, many(10))
        assert "one_suppression_an_address" in plan_of(find.sql, find.params)


@pytest.mark.django_db(transaction=True)
class TestConcurrency:
    def test_20_concurrent_suppressions_of_one_address_create_one_row(self):
        workspace = make_account("alice").workspace
        spellings = ["ada@example.com", "ADA@example.com"] * 10
        found = run_concurrently(
            lambda address: suppress_address(workspace, address=address, reason=Reason.MANUAL), spellings
        )
        assert Suppression.objects.count() == 1
        assert len({row.id for row, _ in found}) == 1
        assert sum(is_new for _, is_new in found) == 1

    def test_concurrent_batches_in_any_order_do_not_deadlock(self):
        workspace = make_account("alice").workspace
        batches = [many(300), many(300)[::-1]] * 4
        found = run_concurrently(
            lambda batch: suppress_addresses(workspace, addresses=batch, reason=Reason.MANUAL), batches
        )
        assert Suppression.objects.count() == 300
        assert sum(is_new for answer in found for _, is_new in answer) == 300
