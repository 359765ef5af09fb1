"""Resend's API: suppressions."""

import pytest

from suppressions.models import Suppression
from suppressions.services import suppress_addresses
from tests.conftest import make_key
from tests.interfaces.compat.conftest import Dialect
from tests.interfaces.compat.test_resend import error
from tests.rows import each

pytestmark = pytest.mark.django_db


def test_an_address_is_suppressed_read_and_removed_by_id_and_by_address(resend):
    added = resend.post("/suppressions", {"email": "Ada@example.com"})
    assert added.status_code == 201
    given = added.json()["id"]
    assert added.json() == {"object": "suppression", "id": given}
    assert resend.post("/suppressions", {"email": "ada@example.com"}).json()["id"] == given
    read = resend.get(f"/suppressions/{given}").json()
    assert (read["email"], read["origin"], read["source_id"]) == ("Ada@example.com", "manual", None)
    assert resend.get("/suppressions/ada%40example.com").json() == read
    removed = resend.call("DELETE", "/suppressions/ada%40example.com").json()
    assert removed == {"object": "suppression", "id": given, "deleted": True}
    assert error(resend.get(f"/suppressions/{given}")) == (404, "not_found")
    assert error(resend.get("/suppressions/ada%40example.com")) == (404, "not_found")


def test_the_list_is_filtered_by_origin(resend, alice):
    for reason in Suppression.Reason:
        suppress_addresses(alice.workspace, addresses=[f"{reason}@example.com"], reason=reason)

    def origins(query: str) -> list[tuple[str, str]]:
        rows = resend.get(f"/suppressions{query}").json()["data"]
        assert not any("object" in row for row in rows)
        return sorted((row["email"].partition("@")[0], row["origin"]) for row in rows)

    assert origins("?origin=bounce") == [("bounce", "bounce")]
    assert origins("?origin=manual") == [("manual", "manual"), ("unsubscribe", "manual")]
    assert len(origins("")) == 4
    assert error(resend.get("/suppressions?origin=other")) == (422, "validation_error")


def test_several_addresses_are_added_and_removed(resend):
    emails = ["a@example.com", "b@example.com", "c@example.com"]
    added = resend.post("/suppressions/batch/add", {"emails": emails})
    assert added.status_code == 201
    ids = [one["id"] for one in added.json()["data"]]
    removed = resend.post("/suppressions/batch/remove", {"emails": ["B@example.com", "z@example.com"]}).json()
    assert removed["data"] == [{"object": "suppression", "id": ids[1], "deleted": True}]
    by_id = resend.post("/suppressions/batch/remove", {"ids": [ids[0], ids[1], "x", 7]}).json()
    assert [one["id"] for one in by_id["data"]] == [ids[0]]
    assert [row.email for row in Suppression.objects.all()] == ["c@example.com"]


@each(
    ("path", "body", "name"),
    [
        ("", {}, "missing_required_field"),
        ("", {"email": "nobody"}, "validation_error"),
        ("/batch/add", {}, "missing_required_field"),
        ("/batch/add", {"emails": ["nobody"]}, "validation_error"),
        ("/batch/add", {"emails": [f"a{n}@example.com" for n in range(101)]}, "validation_error"),
        ("/batch/remove", {"ids": ["a"] * 101}, "validation_error"),
        ("/batch/remove", {"ids": "a"}, "validation_error"),
        ("/batch/remove", {}, "missing_required_field"),
    ],
)
def test_an_invalid_request_is_refused(resend, path, body, name):
    assert error(resend.post(f"/suppressions{path}", body)) == (422, name)
    assert not Suppression.objects.exists()


def test_100_addresses_pass(resend):
    body = {"emails": [f"a{n}@example.com" for n in range(100)]}
    assert len(resend.post("/suppressions/batch/add", body).json()["data"]) == 100
    assert len(resend.post("/suppressions/batch/remove", body).json()["data"]) == 100


def test_a_foreign_suppression_is_not_found(resend, bob):
    foreign = (
        Dialect("resend", make_key(bob.workspace)).post("/suppressions", {"email": "ada@example.com"}).json()["id"]
    )
    for reference in (foreign, "ada%40example.com", "x", "%00"):
        for method in ("GET", "DELETE"):
            assert error(resend.call(method, f"/suppressions/{reference}")) == (404, "not_found")
    assert resend.post("/suppressions/batch/remove", {"ids": [foreign]}).json() == {"data": []}
    assert resend.get("/suppressions").json()["data"] == []
    assert Suppression.objects.count() == 1
