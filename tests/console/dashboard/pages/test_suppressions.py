import csv
import html
import io
import re

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from console.dashboard.pages import suppression_files
from suppressions.models import Suppression
from suppressions.services import suppress_address, suppress_addresses
from tests.console.dashboard.conftest import make_email

LIST = "/dashboard/suppressions/"


def upload(owner, data: bytes, name: str = "list.csv"):
    return owner.post(f"{LIST}import/", {"file": SimpleUploadedFile(name, data)}, follow=True)


def emails() -> set[str]:
    return set(Suppression.objects.values_list("email", flat=True))


def test_many_are_added_at_once(owner, alice):
    response = owner.post(f"{LIST}add/", {"addresses": "ada@example.com\r\n\r\n Bo <bo@example.com>,\n"}, follow=True)

    assert emails() == {"ada@example.com", "bo@example.com"}
    assert "2 added, 0 already suppressed" in response.content.decode()
    assert set(Suppression.objects.values_list("workspace", "reason")) == {(alice.workspace.id, "manual")}
    # An existing suppression keeps its reason.
    Suppression.objects.update(reason="complaint")
    response = owner.post(f"{LIST}add/", {"addresses": "ADA@example.com"}, follow=True)
    assert "0 added, 1 already suppressed" in response.text
    assert set(Suppression.objects.values_list("reason", flat=True)) == {"complaint"}


def test_an_invalid_address_is_a_form_error(owner):
    for text in ("", "nonsense", "ada@example.com\nnonsense", "a@b@c"):
        assert "addresses" in owner.post(f"{LIST}add/", {"addresses": text}).context["form"].errors, text
    assert not emails()


def test_search_and_reason_filter_the_list(owner, alice):
    suppress_address(alice.workspace, address="ada@example.com", reason="bounce")
    suppress_address(alice.workspace, address="bo_o@example.com", reason="manual")

    for query, found in (("search=ADA", ["ada@example.com"]), ("search=o_o", ["bo_o@example.com"]), ("search=%25", [])):
        rows = owner.get(f"{LIST}?{query}").context["listing"].rows
        assert [row.email for row in rows] == found
    assert [row.email for row in owner.get(f"{LIST}?reason=bounce").context["listing"].rows] == ["ada@example.com"]


def test_removing_requires_confirmation(owner, alice):
    suppression, _ = suppress_address(alice.workspace, address="ada@example.com", reason="bounce")

    assert owner.get(f"{LIST}{suppression.id}/delete/").status_code == 200
    assert emails()
    owner.post(f"{LIST}{suppression.id}/delete/")
    assert not emails()
    assert owner.post(f"{LIST}{suppression.id}/delete/").status_code == 404


def test_a_file_is_imported(owner):
    for data in (
        b"ada@example.com\nbo@example.com\n",
        b"\xef\xbb\xbfname,Email\r\nAda,ada@example.com\r\nBo,bo@example.com\r\n",
        b'"L., Ada",ada@example.com\nBo,bo@example.com',
        b"email,reason\nada@example.com,bounce\n\n  ,\nbo@example.com,manual\n",
    ):
        upload(owner, data)
        assert emails() == {"ada@example.com", "bo@example.com"}, data
        Suppression.objects.all().delete()


def test_invalid_lines_are_skipped_and_listed(owner):
    page = upload(owner, b"ada@example.com\nnonsense\n<script>alert(1)</script>\n").content.decode()

    assert emails() == {"ada@example.com"}
    assert "2 lines were skipped" in page
    assert "Line 2:" in page
    assert "<script>alert" not in page


def test_a_file_that_cannot_be_read_is_a_form_error(owner):
    for data, text in (
        (b"", "empty"),
        (b"a@example.com\n" * 80_000, "1 MiB"),
        (b"a@b.example\n" * 10_001, "10,000 rows"),
        (b"\xff\xfea", "UTF-8"),
        (b"a\0b", "not a text file"),
        (b'"' + b"a" * 200_000, "not valid CSV"),
    ):
        assert text in str(upload(owner, data).context["form"].errors), text
    assert not emails()

    upload(owner, b"".join(b"a%d@b.example\n" % number for number in range(suppression_files.MAX_ROWS)))
    assert len(emails()) == suppression_files.MAX_ROWS


def test_an_export_contains_no_formula_and_can_be_imported_again(owner, alice):
    given = ["=cmd@example.com", "+1@example.com", "-a@example.com", "'quoted@example.com", "ada@example.com"]
    suppress_addresses(alice.workspace, addresses=given, reason="manual")

    response = owner.get(f"{LIST}export/")
    data = b"".join(response)
    cells = [row[0] for row in csv.reader(io.StringIO(data.decode()))][1:]

    assert response["Content-Disposition"] == 'attachment; filename="suppressions.csv"'
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))]
    Suppression.objects.all().delete()
    upload(owner, data)
    assert emails() == set(given)


def test_an_export_quotes_every_cell_of_all_pages(owner, alice, monkeypatch):
    monkeypatch.setattr("console.dashboard.pages.suppressions.PAGE_ROWS", 2)
    suppress_addresses(alice.workspace, addresses=[f"a{number}@example.com" for number in range(5)], reason="bounce")
    header, *lines = b"".join(owner.get(f"{LIST}export/")).decode().splitlines()
    assert header == '"email","reason","createdAt"'
    assert sorted(line.rpartition(",")[0] for line in lines) == [
        f'"a{number}@example.com","bounce"' for number in range(5)
    ]


class TestRemovingSelected:
    PATH = f"{LIST}remove/"

    @pytest.fixture
    def suppressed(self, alice) -> list[str]:
        addresses = [f"{name}@example.com" for name in ("ada", "bo", "cy")]
        return [row.id for row, _ in suppress_addresses(alice.workspace, addresses=addresses, reason="bounce")]

    def test_asks_first_and_removes_the_selected_addresses(self, owner, alice, suppressed):
        page = owner.post(self.PATH, {"selected": suppressed[:2]}).text
        assert "Emails to a removed address will be sent again" in page
        assert page.count('name="selected"') == 2
        assert len(emails()) == 3

        response = owner.post(self.PATH, {"selected": suppressed[:2], "confirmed": "1"}, follow=True)

        assert "2 addresses were removed." in response.content.decode()
        assert emails() == {"cy@example.com"}
        assert alice.workspace.audit.filter(act="suppression_removed").count() == 2

    def test_leaves_those_of_another_workspace(self, owner, bob, suppressed):
        foreign, _ = suppress_address(bob.workspace, address="secret@bob.example", reason="bounce")

        page = owner.post(self.PATH, {"selected": [foreign.id, suppressed[0]]}).content.decode()
        owner.post(self.PATH, {"selected": [foreign.id, suppressed[0]], "confirmed": "1"})

        assert "secret@bob.example" not in page
        assert emails() == {"bo@example.com", "cy@example.com", "secret@bob.example"}

    def test_removes_nothing_without_valid_ids(self, owner, suppressed):
        for selected in ([], ["sup_"], ["nothing-like-an-id"], ["1; DROP"]):
            response = owner.post(self.PATH, {"selected": selected, "confirmed": "1"})
            assert response.status_code == (404 if selected else 302), selected
        assert len(emails()) == 3

    def test_is_limited_to_one_page(self, owner, alice):
        many = [f"a{number}@example.com" for number in range(30)]
        rows = suppress_addresses(alice.workspace, addresses=many, reason="manual")

        owner.post(self.PATH, {"selected": [row.id for row, _ in rows], "confirmed": "1"})

        assert len(emails()) == 5


def test_a_bounced_address_links_to_its_bounce(owner, alice):
    suppress_address(alice.workspace, address="ada+x@example.com", reason="bounce")
    suppress_address(alice.workspace, address="bo@example.com", reason="manual")
    fields = {"to": ["ada+x@example.com"], "search_text": "ada+x@example.com\nhello"}
    bounced = make_email(alice.workspace, status="bounced", **fields)
    make_email(alice.workspace, **fields)

    (link,) = re.findall(r'href="([^"]*status=bounced)"', owner.get(LIST).content.decode())
    listing = owner.get(html.unescape(link)).context["listing"]

    assert [row.id for row in listing.rows] == [bounced.id]
